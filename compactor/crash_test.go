package compactor_test

import (
	"fmt"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/tier/hot"
)

// steps are those of a seal, in order.
var steps = []struct {
	name string
	do   func(*rig, *compactor.Sealing) error
}{
	{"intend", func(_ *rig, s *compactor.Sealing) error { return s.Intend(bg) }},
	{"upload", func(_ *rig, s *compactor.Sealing) error { return s.Upload(bg) }},
	{"commit", func(_ *rig, s *compactor.Sealing) error { return s.Commit(bg) }},
	{"evict", func(r *rig, _ *compactor.Sealing) error { return r.EvictStream(bg, r.record("a").ID) }},
}

func TestCrashBetweenAnyTwoSteps(t *testing.T) {
	content := letters(150)
	for n := range len(steps) + 1 {
		t.Run(fmt.Sprintf("after %d steps", n), func(t *testing.T) {
			r := newRig(t, setup{})
			id := r.create("a", content)
			s := r.build(r.Compactor, id)
			for _, step := range steps[:n] {
				r.must(step.do(r, s))
			}
			r.crash()
			r.holds("a", content, 0)
			r.append("a", "more")
			r.holds("a", content+"more", 0)

			// The first passes do what was left, and the sweep finds what was written for
			// nothing, but not before its time.
			r.pass()
			r.marks("a", cut(n), 150, 154)
			r.holds("a", content+"more", 0)
			lost := 0
			if n == 2 { // the upload without its commit
				lost = 1
			}
			named := int(r.record("a").Segments)
			r.count(named+lost, "after the crash")
			r.wait(grace) // the intent is given up
			r.count(named+lost, "when the intent is given up")
			r.wait(grace - time.Millisecond)
			r.count(named+lost, "just before the grace is over")
			r.wait(time.Millisecond)
			r.count(named, "after the grace")
			r.must(r.EvictStream(bg, id))
			r.holds("a", content+"more", 0)
		})
	}
}

// cut is where a crash after n steps leaves the cut.
func cut(n int) uint64 {
	if n == len(steps) {
		return 150
	}
	return 0
}

// A step whose outcome is not known is given up. That loses nothing.
func TestUploadOfUnknownOutcome(t *testing.T) {
	for what, kind := range map[string]fault.Kind{"refused": fault.Before, "reply lost": fault.After} {
		t.Run(what, func(t *testing.T) {
			content := letters(150)
			r := newRig(t, setup{})
			r.create("a", content)
			r.faults.Script(fault.Fault{Op: fault.Put, Kind: kind})
			if _, err := r.Pass(bg); err == nil {
				t.Error("the pass went well")
			}
			r.marks("a", 0, 0, 150)
			r.pass()
			r.marks("a", 0, 150, 150)
			r.wait(grace)
			r.count(1, "after the grace")
			r.holds("a", content, 0)
		})
	}
}

func TestCrashBetweenRemovalAndForget(t *testing.T) {
	r := newRig(t, setup{})
	id := r.create("a", letters(150))
	r.pass()
	key := r.objects(".zst")[0]
	r.must(r.store.Delete(bg, named("a")))
	r.pass()
	r.clock.Add(grace.Milliseconds())
	r.must(r.blobs.Delete(bg, key)) // removed, and then the power fails
	r.crash()
	v := r.hot.View()
	state, err := v.Object(key)
	v.Close()
	if err != nil || state != hot.Retired {
		t.Fatalf("object is %v, %v", state, err)
	}
	r.pass()
	if r.object(key) != 0 {
		t.Errorf("object of %s is still in the catalog", id)
	}
}

func (r *rig) object(key string) hot.ObjectState {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	s, err := v.Object(key)
	r.must(err)
	return s
}
