package tiertest_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"firn/internal/blob/mem"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// BenchmarkMillionStreams creates a million streams of 100 bytes and opens the store
// again: beside Pebble alone on the same directory.
//
//	go test ./internal/tiertest -run '^$' -bench MillionStreams -benchtime 1x -timeout 30m
func BenchmarkMillionStreams(b *testing.B) {
	const streams = 1_000_000
	for range b.N {
		dir := b.TempDir()
		o := hot.Options{Fatal: func(m string) { panic(m) }}
		h, err := hot.Open(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		begun := time.Now()
		populate(b, h, streams)
		b.ReportMetric(streams/time.Since(begun).Seconds(), "creates/s")
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}

		// In turns, so that what the page cache has is the same for both.
		var alone, whole []time.Duration
		var heap uint64
		for range 5 {
			alone = append(alone, openPebble(b, dir))
			before := inUse()
			begun := time.Now()
			if h, err = hot.Open(dir, o); err != nil {
				b.Fatal(err)
			}
			whole = append(whole, time.Since(begun))
			heap = max(heap, inUse()-min(inUse(), before))
			if err := h.Close(); err != nil {
				b.Fatal(err)
			}
		}
		slices.Sort(alone)
		slices.Sort(whole)
		b.ReportMetric(float64(alone[2].Microseconds())/1000, "pebble-open-ms")
		b.ReportMetric(float64(whole[2].Microseconds())/1000, "open-ms")
		b.ReportMetric(float64(heap)/(1<<20), "heap-MiB")
		benchmarkListing(b, dir, o)
	}
}

func populate(tb testing.TB, h *hot.Store, streams int) {
	payload := make([]byte, 100)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 512 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(streams); i = next.Add(1) {
				_, err := h.Create(context.Background(), hot.Create{
					Name:        stream.Name{Bucket: stream.DefaultBucket, ID: fmt.Sprintf("device-%07d", i)},
					ContentType: "text/plain", Mode: stream.Bytes, Payload: payload,
				})
				if err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func openPebble(b *testing.B, dir string) time.Duration {
	begun := time.Now()
	db, err := pebble.Open(dir, &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}, MemTableSize: 64 << 20})
	if err != nil {
		b.Fatal(err)
	}
	took := time.Since(begun)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

type quiet struct{}

func (quiet) Infof(string, ...any)              {}
func (quiet) Errorf(string, ...any)             {}
func (quiet) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// benchmarkListing pages through the bucket in steps, at the end too.
func benchmarkListing(b *testing.B, dir string, o hot.Options) {
	h, err := hot.Open(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	c, err := cold.Open(mem.New(mem.Options{}), cold.Options{StoreID: h.ID()})
	if err != nil {
		b.Fatal(err)
	}
	s := tier.New(tier.Options{Hot: h, Cold: c, SpoolDir: b.TempDir()})
	var took []time.Duration
	for _, after := range []string{"", "device-0250000", "device-0500000", "device-0750000", "device-0999000"} {
		for range 5 {
			begun := time.Now()
			list, err := listPage(s, after)
			if err != nil || list == 0 {
				b.Fatalf("page of %d, %v", list, err)
			}
			took = append(took, time.Since(begun))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "page-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "slowest-page-ms")
	c.Close()
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
}

func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

func listPage(s *tier.Store, after string) (int, error) {
	l, err := s.List(context.Background(), tier.ListRequest{Bucket: stream.DefaultBucket, After: after, Limit: 1000})
	return len(l.Streams), err
}
