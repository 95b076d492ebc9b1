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

// BenchmarkAppend appends from many goroutines beside subscriptions that none of the
// streams belongs to. The disk is memory, so that a sync hides nothing.
func BenchmarkAppend(b *testing.B) {
	for _, bb := range []struct {
		name  string
		n     int
		globs []string // none: explicit links
	}{
		{"none", 0, nil},
		{"one", 1, []string{"tenant-%d/*"}},
		{"elsewhere", 10_000, []string{"tenant-%d/*", "tenant-%d/**/events", "*/*/only-%d", "**/deep-%d"}},
		{"prefixes", 10_000, []string{"plain/*/c-%d", "**/x-%d", "plain/**/y-%d", "*/**/*/z-%d", "plain/*/events/w-%d"}},
		{"links", 10_000, nil},
	} {
		b.Run(bb.name, func(b *testing.B) {
			r := newRig(b)
			ids := make([]stream.ID, 500)
			for i := range ids {
				ids[i] = r.put(fmt.Sprintf("plain/%d/events", i), "").ID
			}
			r.subscribeMany(bb.n, bb.globs)
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

// subscribeMany makes subscriptions with globs in turn, or with a link each.
func (r *rig) subscribeMany(n int, globs []string) {
	r.t.Helper()
	r.put("wakes", "")
	var wg sync.WaitGroup
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				c := subscribe.Config{Type: "pull-wake", WakeStream: "wakes"}
				if len(globs) > 0 {
					c.Pattern = fmt.Sprintf(globs[i%len(globs)], i)
				} else {
					c.Streams = []string{fmt.Sprintf("plain/%d/other", i)}
				}
				if _, _, err := r.Put(bg, subscribe.Flat, fmt.Sprint("s", i), c, root); err != nil {
					r.t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}
