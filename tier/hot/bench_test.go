package hot_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// BenchmarkAppend appends 256 bytes from many goroutines, on a real disk. Allocations
// are those of the whole path, Pebble's included, for one append.
func BenchmarkAppend(b *testing.B) {
	for _, streams := range []int{1, 500} {
		for _, writers := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("streams=%d/writers=%d", streams, writers), func(b *testing.B) {
				s, err := hot.Open(b.TempDir(), hot.Options{})
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				benchmarkAppend(b, s, streams, writers)
			})
		}
	}
}

// BenchmarkAppendTracked is BenchmarkAppend while changes are noted for copies of the
// catalog.
func BenchmarkAppendTracked(b *testing.B) {
	for _, streams := range []int{1, 500} {
		b.Run(fmt.Sprintf("streams=%d/writers=64", streams), func(b *testing.B) {
			s, err := hot.Open(b.TempDir(), hot.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			s.TrackChanges()
			s.BeginCopy(true).End(true)
			benchmarkAppend(b, s, streams, 64)
		})
	}
}

func benchmarkAppend(b *testing.B, s *hot.Store, streams, writers int) {
	ctx := context.Background()
	ids := make([]stream.ID, streams)
	for i := range ids {
		r, err := s.Create(ctx, hot.Create{
			Name: stream.Name{Bucket: stream.DefaultBucket, ID: fmt.Sprint(i)}, ContentType: "text/plain", Mode: stream.Bytes,
		})
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = r.Record.ID
	}
	payload := make([]byte, 256)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	b.ResetTimer()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			c := &hot.Append{ContentType: "text/plain", Payload: payload}
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				c.ID = ids[i%int64(streams)]
				if _, err := s.Append(ctx, c); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}
