package compactor_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
)

// body is the content of a put.
func body(s string) blob.Body { return strings.NewReader(s) }

func (r *rig) evictAll(id string) {
	r.t.Helper()
	r.must(r.EvictStream(bg, r.record(id).ID))
}

func (r *rig) forkAt(id, source string, at uint64) {
	r.t.Helper()
	o := r.record(source).Offset(at)
	_, _, err := r.store.Create(bg, tier.CreateRequest{Name: named(id), Fork: &tier.ForkRequest{Source: named(source), Offset: &o}})
	r.must(err)
}

func (r *rig) closeStream(id string) {
	r.t.Helper()
	_, err := r.store.Append(bg, tier.AppendRequest{Name: named(id), Close: true})
	r.must(err)
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			r.t.Fatalf("never: %s", what)
		}
	}
}

func TestOutageIsToldAndNothingIsLost(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 200, Target: 100}})
	r.faults.Script(fault.Fault{Kind: fault.Before, Times: fault.Always})
	ctx, stop := context.WithCancel(bg)
	ended := make(chan error)
	go func() { ended <- r.Run(ctx) }()

	want := letters(500)
	r.create("a", want)
	r.until("the outage is told", func() bool { return r.Status().Err != nil })
	if s := r.Status(); !errors.Is(s.Err, stream.ErrColdUnavailable) || s.Since.IsZero() || s.Stuck != 0 {
		t.Errorf("status in an outage: %+v", s)
	}
	r.append("a", letters(100))
	want += letters(100)
	r.holds("a", want, 0)
	r.marks("a", 0, 0, 600)

	r.faults.Clear()
	r.until("the end of the outage is told", func() bool { return r.Status().Err == nil })
	r.until("the budget is kept", func() bool { return r.hot.HotBytes() <= 200 })
	r.holds("a", want, 0)
	stop()
	r.must(<-ended)
}

// liar acknowledges puts of segments and keeps something else, or nothing.
type liar struct {
	blob.Store
	keeps func([]byte) []byte // nil: nothing at all
}

func (l *liar) Put(ctx context.Context, key string, b blob.Body, o blob.PutOptions) (blob.Info, error) {
	data := make([]byte, b.Size())
	if _, err := b.ReadAt(data, 0); err != nil {
		return blob.Info{}, err
	}
	if data = l.keeps(data); data == nil {
		return blob.Info{Key: key}, nil
	}
	return l.Store.Put(ctx, key, bytes.NewReader(data), o)
}

func TestHotCopyStaysWhenTheStoreLies(t *testing.T) {
	for what, keeps := range map[string]func([]byte) []byte{
		"nothing kept":   func([]byte) []byte { return nil },
		"an empty one":   func([]byte) []byte { return []byte{} },
		"half of it":     func(d []byte) []byte { return d[:len(d)/2] },
		"doubled":        func(d []byte) []byte { return append(d, d...) },
		"other bytes":    func(d []byte) []byte { return bytes.Repeat([]byte{7}, len(d)) },
		"in other order": func(d []byte) []byte { slices.Reverse(d); return d },
	} {
		t.Run(what, func(t *testing.T) {
			content := letters(150)
			l := &liar{keeps: keeps}
			r := newRig(t, setup{
				policy:  compactor.Policy{Budget: 1, HardBytes: 1 << 30, Target: 100},
				between: func(b blob.Store) blob.Store { l.Store = b; return l },
			})
			r.create("a", content)
			for range 3 {
				if _, err := r.Pass(bg); !errors.Is(err, stream.ErrColdUnavailable) {
					t.Errorf("pass: %v, want ErrColdUnavailable", err)
				}
			}
			r.marks("a", 0, 0, 150)
			r.holds("a", content, 0)
			l.keeps = func(d []byte) []byte { return d }
			r.pass()
			r.marks("a", 150, 150, 150)
			r.holds("a", content, 0)
			r.wait(grace)
			r.count(1, "what the lies left is swept")
		})
	}
}

// Once another process has taken the prefix over, nothing is written or removed.
func TestSupersededProcessTouchesNothing(t *testing.T) {
	r := newRig(t, setup{})
	fence := uint64(0)
	options := cold.ClaimOptions{Remember: func(_ context.Context, f uint64) error { fence = f; return nil }}
	r.must(r.cold.Claim(bg, options))
	r.sealed("a")
	r.must(r.store.Delete(bg, named("a")))
	r.pass()
	r.create("b", letters(150))
	r.clock.Add(grace.Milliseconds())

	other, err := cold.Open(r.faults, cold.Options{StoreID: r.hot.ID()})
	r.must(err)
	defer other.Close()
	options.Fence = fence
	r.must(other.Claim(bg, options))
	puts := r.faults.Calls(fault.Put)
	for range 3 {
		_, err := r.Pass(bg)
		r.is(err, cold.ErrFenced, "pass")
	}
	if n := r.faults.Calls(fault.Put); n != puts {
		t.Errorf("%d objects were written", n-puts)
	}
	r.marks("b", 0, 0, 150)
	r.count(2, "what was to be removed")
}

func TestSealingOffIsTold(t *testing.T) {
	r := newRig(t, setup{})
	id := r.create("a", letters(150))
	c, err := compactor.New(compactor.Options{Hot: r.hot, Cold: r.cold, SealingOff: true, Policy: compactor.Policy{Budget: 1}, SweepInterval: 1})
	r.must(err)
	r.is(c.SealStream(bg, id), compactor.ErrSealingOff, "seal a stream")
	r.publish("a", 10)
	r.publish("a", 20)
	r.clock.Add(grace.Milliseconds())
	if _, err := c.Pass(bg); err != nil {
		t.Fatal(err)
	}
	r.marks("a", 20, 20, 150) // moved by the snapshot alone
	if n := len(r.objects(".snapshot")); n != 1 {
		t.Errorf("%d snapshots, want the last one", n)
	}
}

func TestSealStreamSealsAllThatThereIs(t *testing.T) {
	r := newRig(t, setup{})
	id := r.create("a", "")
	for i := range 30 {
		r.append("a", letters(20+i))
	}
	tail := r.record("a").Tail
	r.must(r.SealStream(bg, id))
	r.marks("a", 0, tail, tail)
	r.must(r.EvictStream(bg, id))
	r.marks("a", tail, tail, tail)
	r.must(r.store.Delete(bg, named("a")))
	r.is(r.SealStream(bg, id), stream.ErrNotFound, "seal a deleted stream")
	r.is(r.EvictStream(bg, id), stream.ErrNotFound, "evict a deleted stream")
}
