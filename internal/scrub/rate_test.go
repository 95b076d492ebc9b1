package scrub_test

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/scrub"
	"firn/tier"
)

// watched notes when how much of which object was asked for.
type watched struct {
	blob.Store
	now func() time.Time

	mu   sync.Mutex
	gets []get
}

type get struct {
	at    time.Time
	key   string
	bytes int64
}

func (w *watched) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	w.mu.Lock()
	w.gets = append(w.gets, get{w.now(), key, n})
	w.mu.Unlock()
	return w.Store.Get(ctx, key, off, n)
}

// watch puts a watch between the scrubber and the objects.
func (r *rig) watch(o scrub.Options) *watched {
	r.t.Helper()
	w := &watched{Store: r.faults, now: r.now}
	o.Hot, o.Compactor, o.Remote, o.Now = r.hot, r.compactor, w, r.now
	o.Wait = func(ctx context.Context, d time.Duration) error { r.clock.Add(int64(max(d, 0))); return ctx.Err() }
	var err error
	r.scrub, err = scrub.New(o)
	r.must(err)
	return w
}

// noise makes a stream of n bytes that cannot be compressed.
func (r *rig) noise(id string, n int) string {
	r.t.Helper()
	random := rand.NewChaCha8([32]byte{byte(n)})
	info, _, err := r.store.Create(bg, tier.CreateRequest{Name: named(id)})
	r.must(err)
	for n > 0 {
		body := make([]byte, min(n, 1<<20))
		_, _ = random.Read(body)
		_, err := r.store.Append(bg, tier.AppendRequest{Name: named(id), ContentType: "application/octet-stream", Body: body})
		r.must(err)
		n -= len(body)
	}
	large, err := compactor.New(compactor.Options{Hot: r.hot, Cold: r.cold, Policy: compactor.Policy{Target: 1 << 30}})
	r.must(err)
	r.must(large.SealStream(bg, info.ID))
	r.evict(id)
	return r.object(id)
}

// Large objects are read by few GETs, and never faster than the rate says.
func TestRateIsKept(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for id, n := range map[string]int{"a": 7 << 20, "b": 17 << 20, "c": 30 << 20} {
		r.noise(id, n)
	}
	const rate = 1 << 20
	w := r.watch(scrub.Options{Rate: rate, Period: time.Millisecond})
	start := r.now()
	for r.scrub.Status().Objects() == 0 && len(w.gets) < 1+3+4+1 {
		idle, err := r.scrub.Step(bg)
		r.must(err)
		r.clock.Add(int64(idle))
	}
	// 8 MiB are the burst.
	total := int64(0)
	for i, g := range w.gets {
		total += g.bytes
		if g.bytes > 8<<20 {
			t.Errorf("GET %d asks for %d bytes", i, g.bytes)
		}
		if most := g.at.Sub(start).Seconds()*rate + 8<<20 + rate; float64(total) > most {
			t.Errorf("%d bytes were asked for within %v", total, g.at.Sub(start))
		}
	}
	objects := map[string]int{}
	for _, g := range w.gets[:8] {
		objects[g.key]++
	}
	if len(objects) != 3 {
		t.Errorf("the first GETs are of %d objects: %+v", len(objects), w.gets)
	}
}

// A round takes its period but for a tenth, and is spread evenly over it.
func TestRoundIsSpreadOverThePeriod(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for i := range 20 {
		r.sealed(letter(i))
		r.evict(letter(i))
	}
	w := r.watch(scrub.Options{Period: period})
	start := r.now()
	r.pass(period - time.Minute)
	if len(w.gets) != 20 {
		t.Fatalf("%d GETs in a period, want 20", len(w.gets))
	}
	for i, g := range w.gets {
		want := time.Duration(i) * period * 9 / 10 / 20
		if d := g.at.Sub(start) - want; d < -time.Hour || d > time.Hour {
			t.Errorf("object %d was read after %v, want %v", i, g.at.Sub(start), want)
		}
	}
	r.pass(9 * period)
	if n := len(w.gets); n < 200 || n > 220 {
		t.Errorf("%d GETs in ten periods", n)
	}
	if s := r.metric("firn_scrub_whole_round_seconds"); s > 2*period.Seconds() {
		t.Errorf("the last whole round began %v s ago", s)
	}
}

// What is sealed during a round makes it faster, not longer.
func TestRoundKeepsItsPeriodWhileStreamsGrow(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for i := range 5 {
		r.sealed(letter(i))
		r.evict(letter(i))
	}
	r.pass(period / 2)
	for i := range 15 {
		r.sealed(letter(5 + i))
		r.evict(letter(5 + i))
	}
	r.pass(period / 2)
	before := r.metric("firn_scrub_objects_total")
	r.pass(period)
	if n := r.metric("firn_scrub_objects_total") - before; n < 19 || n > 22 {
		t.Errorf("%v objects in the second period, want 20", n)
	}
	if s := r.metric("firn_scrub_whole_round_seconds"); s > 2*period.Seconds() {
		t.Errorf("the last whole round began %v s ago", s)
	}
}

// Readers' frames stay where they are.
func TestScrubLeavesTheCacheAlone(t *testing.T) {
	r := newRig(t, scrub.Options{})
	r.sealed("a")
	r.evict("a")
	r.holds("a")
	r.work()
	calls := r.faults.Calls(fault.Get)
	r.pass(period)
	r.holds("a")
	if n := r.faults.Calls(fault.Get) - calls; n != 1 {
		t.Errorf("%d GETs, want that of the scrub", n)
	}
	r.damaged()
}
