package backup_test

import (
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/backup"
	"firn/internal/blob/fs"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// BenchmarkStreams makes N streams with a few unsealed bytes each, copies them and
// rebuilds them, on a real disk: -benchtime 1000000x. It reports what each takes, and
// how much more memory was in use at most.
func BenchmarkStreams(b *testing.B) {
	blobs, err := fs.Open(b.TempDir(), fs.Options{})
	if err != nil {
		b.Fatal(err)
	}
	s, err := hot.Open(filepath.Join(b.TempDir(), "hot"), hot.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 256 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				n := stream.Name{Bucket: stream.DefaultBucket, ID: fmt.Sprintf("tenant-%d/orders/%d", i%1000, i)}
				if _, err := s.Create(b.Context(), hot.Create{
					Name: n, ContentType: "application/json", Mode: stream.JSON, Payload: []byte("{\"n\":1}\n"),
				}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	c, err := cold.Open(blobs, cold.Options{StoreID: s.ID()})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Claim(b.Context(), cold.ClaimOptions{Remember: s.SetFence}); err != nil {
		b.Fatal(err)
	}
	r, err := backup.New(backup.Options{Hot: s, Cold: c, Blobs: blobs, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	took, most := peak(func() { _, err = r.Copy(b.Context()) })
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(took.Seconds(), "s/copy")
	b.ReportMetric(float64(most)/(1<<20), "copy-MiB")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var rep *backup.Report
	took, most = peak(func() {
		rep, err = backup.Rebuild(b.Context(), backup.RebuildOptions{Blobs: blobs, Dir: filepath.Join(b.TempDir(), "hot"), TakeOver: true})
	})
	if err != nil || rep.Streams != b.N {
		b.Fatalf("rebuilt %+v, %v", rep, err)
	}
	b.ReportMetric(took.Seconds(), "s/rebuild")
	b.ReportMetric(float64(most)/(1<<20), "rebuild-MiB")
}

// peak tells how long work takes, and how much the heap grows at most.
func peak(work func()) (time.Duration, uint64) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, most := heap(), uint64(0)
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				most = max(most, heap())
			}
		}
	}()
	start := time.Now()
	work()
	took := time.Since(start)
	close(done)
	<-watched
	return took, most - min(most, before)
}
