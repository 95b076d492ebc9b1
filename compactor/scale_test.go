package compactor_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// crowd is a store with many small streams on a real disk.
type crowd struct {
	testing.TB
	hot    *hot.Store
	cold   *cold.Store
	faults *fault.Store
	tier   *tier.Store
	comp   *compactor.Compactor
	ids    []stream.ID
	size   int
	ahead  atomic.Int64 // of the store's clock, in ns
}

// newCrowd creates n streams of size bytes each, of which all are due.
func newCrowd(tb testing.TB, n, size int, p compactor.Policy) *crowd {
	tb.Helper()
	c := &crowd{TB: tb, size: size, faults: fault.New(mem.New(mem.Options{})), ids: make([]stream.ID, n)}
	var err error
	c.hot, err = hot.Open(tb.TempDir(), hot.Options{
		SealTarget: p.Target, Now: func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
		Fatal: func(m string) { panic(m) },
	})
	c.must(err)
	tb.Cleanup(func() { c.must(c.hot.Close()) })
	c.cold, err = cold.Open(c.faults, cold.Options{StoreID: c.hot.ID()})
	c.must(err)
	tb.Cleanup(c.cold.Close)
	c.tier = tier.New(tier.Options{Hot: c.hot, Cold: c.cold, SpoolDir: tb.TempDir()})
	e, err := segment.NewEncoder(segment.Options{Concurrency: 2})
	c.must(err)
	p.MaxAge = time.Hour
	c.comp, err = compactor.New(compactor.Options{Hot: c.hot, Cold: c.cold, Encoder: e, Policy: p, SweepInterval: time.Nanosecond})
	c.must(err)
	c.each(64, func(i int) {
		r, err := c.hot.Create(bg, hot.Create{
			Name: named(fmt.Sprint(i)), ContentType: stream.DefaultContentType, Mode: stream.Bytes, Payload: c.content(i),
		})
		c.must(err)
		c.ids[i] = r.Record.ID
	})
	c.ahead.Store(int64(time.Hour))
	return c
}

func (c *crowd) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// content of a stream: text that compresses to about half.
func (c *crowd) content(i int) []byte {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	b := make([]byte, c.size)
	for i := range b {
		b[i] = "0123456789abcdef"[r.IntN(16)]
	}
	return b
}

// each calls fn for every stream, from a number of goroutines.
func (c *crowd) each(workers int, fn func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(c.ids)); i = next.Add(1) - 1 {
				fn(int(i))
			}
		})
	}
	wg.Wait()
}

// passes takes passes until there is nothing more to do.
func (c *crowd) passes() {
	c.Helper()
	for more := true; more; {
		var err error
		more, err = c.comp.Pass(bg)
		c.must(err)
	}
}

// read fails the test unless a stream reads right, by one GET if it is not cached.
func (c *crowd) read(i int) {
	c.Helper()
	p, err := c.tier.Read(bg, named(fmt.Sprint(i)), stream.Start{})
	c.must(err)
	defer p.Release()
	if string(p.Data) != string(c.content(i)) {
		c.Fatalf("stream %d has other bytes", i)
	}
}

// watch measures, until stop is called, the most heap in use and the longest append to
// another stream.
func (c *crowd) watch() (stop func() (heap uint64, longest time.Duration)) {
	r, err := c.hot.Create(bg, hot.Create{Name: named("busy"), ContentType: "text/plain", Mode: stream.Bytes})
	c.must(err)
	done := make(chan struct{})
	var wg sync.WaitGroup
	var heap uint64
	var longest time.Duration
	wg.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			heap = max(heap, m.HeapInuse)
		}
	})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			begun := time.Now()
			_, err := c.hot.Append(bg, &hot.Append{ID: r.Record.ID, ContentType: "text/plain", Payload: []byte("x")})
			if err != nil {
				c.Error(err)
				return
			}
			longest = max(longest, time.Since(begun))
		}
	})
	return func() (uint64, time.Duration) {
		close(done)
		wg.Wait()
		return heap, longest
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

// BenchmarkSealSmallStreams seals 100,000 streams of 1 KiB, evicts them and reads some.
//
//	go test ./compactor -run '^$' -bench SealSmallStreams -benchtime 1x
func BenchmarkSealSmallStreams(b *testing.B) {
	for range b.N {
		c := newCrowd(b, 100_000, 1<<10, compactor.Policy{Target: 8 << 20, Budget: 2 << 30})
		before := heapInUse()
		stop := c.watch()
		begun := time.Now()
		c.passes()
		took := time.Since(begun)
		heap, longest := stop()
		b.ReportMetric(took.Seconds(), "seal-s")
		b.ReportMetric(float64(c.faults.Calls(fault.Put)), "puts")
		b.ReportMetric(float64(c.faults.Calls(fault.Get)), "gets")
		b.ReportMetric(float64(heap-min(heap, before))/(1<<20), "pass-MiB")
		b.ReportMetric(longest.Seconds()*1000, "longest-append-ms")

		begun = time.Now()
		c.each(16, func(i int) { c.must(c.hot.Evict(bg, c.ids[i], uint64(c.size))) })
		b.ReportMetric(time.Since(begun).Seconds(), "evict-s")
		gets := c.faults.Calls(fault.Get)
		const reads = 100
		for i := range reads {
			c.read(i * len(c.ids) / reads)
		}
		b.ReportMetric(float64(c.faults.Calls(fault.Get)-gets)/reads, "gets/read")
	}
}

// One object for each small stream would be as many requests as there are streams.
func TestRequestsFollowBytesNotStreams(t *testing.T) {
	const (
		streams = 10_000
		size    = 600
		target  = 512 << 10
	)
	c := newCrowd(t, streams, size, compactor.Policy{Target: target, Budget: 2 << 30})
	c.passes()
	most := streams*size/target + 2
	if puts := c.faults.Calls(fault.Put); puts > most {
		t.Errorf("%d puts for %d streams, want %d at most", puts, streams, most)
	}
	for range 3 { // idle
		c.ahead.Add(int64(time.Hour))
		c.passes()
	}
	puts, gets := c.faults.Calls(fault.Put), c.faults.Calls(fault.Get)
	if puts > most || gets > puts {
		t.Errorf("%d puts and %d gets after three idle rounds, want %d at most", puts, gets, most)
	}
	c.each(64, func(i int) { c.must(c.hot.Evict(bg, c.ids[i], size)) })
	for i := range 100 {
		before := c.faults.Calls(fault.Get)
		c.read(i * len(c.ids) / 100)
		if n := c.faults.Calls(fault.Get) - before; n > 1 {
			t.Fatalf("read of stream %d took %d gets", i, n)
		}
	}
	c.each(64, func(i int) {
		if i%5 < 3 {
			c.must(c.hot.Delete(bg, c.ids[i]))
		}
	})
	before := c.stored()
	for range 3 {
		c.ahead.Add(int64(2 * time.Hour))
		c.passes()
	}
	if after := c.stored(); after > before/2 {
		t.Errorf("%d bytes are stored after three of five streams were deleted, %d before", after, before)
	}
	for i := 3; i < len(c.ids); i += 100 {
		c.read(i)
	}
}

// stored adds up the objects.
func (c *crowd) stored() (n int64) {
	c.Helper()
	c.must(c.faults.List(bg, "", "", func(i blob.Info) error {
		n += i.Size
		return nil
	}))
	return n
}
