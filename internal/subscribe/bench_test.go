package subscribe_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"firn/internal/subscribe"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// BenchmarkAppend appends from many goroutines beside subscriptions with globs that
// match none of the streams. The disk is memory, so that a sync hides nothing.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{0, 1, 10_000} {
		b.Run(fmt.Sprintf("subscriptions=%d", n), func(b *testing.B) {
			r := newRig(b)
			ids := make([]stream.ID, 500)
			for i := range ids {
				ids[i] = r.put(fmt.Sprintf("plain/%d", i), "").ID
			}
			r.subscribeMany(n)
			payload := []byte(`{"n":1}` + "\n")
			b.ReportAllocs()
			b.ResetTimer()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					c := &hot.Append{ContentType: "application/json", Payload: payload}
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						c.ID = ids[i%int64(len(ids))]
						if _, err := r.hot.Append(bg, c); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// subscribeMany makes subscriptions with patterns of several kinds.
func (r *rig) subscribeMany(n int) {
	r.t.Helper()
	r.put("wakes", "")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				pattern := [...]string{"tenant-%d/*", "tenant-%d/**/events", "*/*/only-%d", "**/deep-%d"}[i%4]
				_, _, err := r.Put(bg, subscribe.Flat, fmt.Sprint("s", i), subscribe.Config{
					Type: "pull-wake", Pattern: fmt.Sprintf(pattern, i), WakeStream: "wakes",
				}, root)
				if err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
