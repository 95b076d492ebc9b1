package compactor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"firn/compactor"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// packed makes a pack of n streams of 20 bytes each and returns its key.
func (r *rig) packed(n int) string {
	r.t.Helper()
	s, err := r.Build(r.few(n, 20)...)
	r.must(err)
	for _, step := range steps[:3] {
		r.must(step.do(r, s))
	}
	r.pass() // the first round
	return r.packs()[0]
}

func (r *rig) remove(from, to int) {
	r.t.Helper()
	for i := from; i < to; i++ {
		r.must(r.store.Delete(bg, named(fmt.Sprint(i))))
	}
	r.pass()
}

func TestDeletingHalfFreesSpaceInTheEnd(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000, MaxAge: time.Minute}})
	r.packed(40)
	r.remove(20, 40)
	r.wait(time.Minute)
	r.count(1, "with exactly half")
	r.remove(19, 20)
	r.wait(time.Minute)
	r.count(2, "while the old one is kept")
	r.wait(grace - time.Millisecond)
	r.count(2, "just before the grace is over")
	r.wait(time.Millisecond)
	r.count(1, "after the grace")
	r.fewHold(19, 20)
	// And so on.
	r.remove(9, 19)
	r.wait(time.Minute)
	r.wait(grace)
	r.count(1, "after another half")
	r.fewHold(9, 20)
	r.remove(0, 9)
	r.wait(grace)
	r.count(0, "after all")
}

// What is needed of several objects shares one.
func TestCopiesShareAnObject(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.few(40, 20)
	r.wait(time.Minute)
	r.count(8, "at first")
	for i := range 40 {
		if i%5 != 0 {
			r.must(r.store.Delete(bg, named(fmt.Sprint(i))))
		}
	}
	r.wait(time.Minute)
	r.wait(time.Minute)
	r.wait(grace)
	if n := len(r.objects(".zst")); n > 4 {
		t.Errorf("%d objects for 160 bytes in packs of 100", n)
	}
	for i := 0; i < 40; i += 5 {
		r.must(r.EvictStream(bg, r.record(fmt.Sprint(i)).ID))
		r.holds(fmt.Sprint(i), letters(20 + i)[i:], 0)
	}
}

func TestCrashBetweenAnyTwoStepsOfACopy(t *testing.T) {
	for n := range 4 {
		t.Run(fmt.Sprintf("after %d steps", n), func(t *testing.T) {
			r := newRig(t, setup{policy: compactor.Policy{Target: 1000, MaxAge: time.Minute}})
			key := r.packed(10)
			r.remove(3, 10)
			s, err := r.BuildCopy(bg, key)
			r.must(err)
			for _, step := range steps[:n] {
				r.must(step.do(r, s))
			}
			r.crash()
			r.wait(time.Minute)
			for range 3 {
				r.wait(grace)
			}
			r.count(1, "after the grace")
			r.fewHold(3, 20)
		})
	}
}

func TestRivalsCopyTheSameObject(t *testing.T) {
	for _, order := range []string{"aaabbb", "ababab", "aabbba", "abbbaa", "abbaba"} {
		t.Run(order, func(t *testing.T) {
			r := newRig(t, setup{policy: compactor.Policy{Target: 1000, MaxAge: time.Minute}})
			key := r.packed(10)
			r.remove(3, 10)
			rivals := map[rune]*compactor.Sealing{}
			for _, who := range "ab" {
				s, err := r.BuildCopy(bg, key)
				r.must(err)
				rivals[who] = s
			}
			taken, won := map[rune]int{}, 0
			for _, who := range order {
				n := taken[who]
				taken[who]++
				err := steps[n].do(r, rivals[who])
				switch {
				case n < 2:
					r.must(err)
				case err == nil:
					won++
				default:
					r.is(err, hot.ErrConflict, "%c's commit", who)
					r.must(rivals[who].Abandon(bg))
				}
			}
			if won != 1 {
				t.Errorf("%d commits were accepted, want 1", won)
			}
			r.wait(grace)
			r.wait(grace)
			r.count(1, "after the grace")
			r.fewHold(3, 20)
		})
	}
}

// A merge takes a stream's range out of the pack while a copy of the pack is written.
func TestCopyPassesOverWhatWasMerged(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
	key := r.packed(10)
	r.remove(3, 10)
	id := r.record("0").ID
	for i := range 7 {
		r.append("0", letters(90)[20+10*i:30+10*i])
		r.must(r.SealStream(bg, id))
	}
	s, err := r.BuildCopy(bg, key)
	r.must(err)
	r.must(s.Intend(bg))
	r.must(s.Upload(bg))
	m := r.merge("0")
	for _, step := range steps[:3] {
		r.must(step.do(r, m))
	}
	r.must(s.Commit(bg))
	r.segments("0", 1)
	r.must(r.EvictStream(bg, id))
	r.holds("0", letters(90), 0)
	r.wait(10 * grace)
	r.holds("0", letters(90), 0)
	r.holds("1", letters(21)[1:], 0)
}

// A damaged object cannot be copied. That holds up no other.
func TestDamagedObjectDoesNotStopOtherCopies(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.few(40, 20)
	r.wait(time.Minute)
	lost := r.packs()[3]
	for i := range 40 {
		if i%5 != 0 {
			r.must(r.store.Delete(bg, named(fmt.Sprint(i))))
		}
		r.must(r.EvictStream(bg, r.record(fmt.Sprint(i-i%5)).ID))
	}
	r.must(r.blobs.Delete(bg, lost))
	r.wait(time.Minute)
	r.wait(time.Minute)
	r.wait(grace)
	broken := 0
	for i := 0; i < 40; i += 5 {
		id := fmt.Sprint(i)
		p, err := r.store.Read(bg, named(id), stream.Start{})
		switch {
		case errors.Is(err, stream.ErrColdUnavailable):
			broken++
		case err != nil || string(p.Data) != letters(20 + i)[i:]:
			t.Errorf("%s reads %q, %v", id, p.Data, err)
		}
		p.Release()
	}
	v := r.hot.View()
	defer v.Close()
	state, err := v.Object(lost)
	r.must(err)
	if broken > 0 && state != hot.Live {
		t.Errorf("%d streams need the lost object, which is in state %d", broken, state)
	}
	if n := len(r.objects(".zst")); n > 6 {
		t.Errorf("%d objects are left", n)
	}
}
