package compactor_test

import (
	"fmt"
	"testing"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// of is the object of a stream at a position.
func (r *rig) of(id string, at uint64) string {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(id))
	r.must(err)
	ref, err := v.Segment(rec.ID, at)
	r.must(err)
	return ref.Object
}

// lose removes an object, which is known to be damaged from then on.
func (r *rig) lose(key string) {
	r.t.Helper()
	r.must(r.blobs.Delete(bg, key))
	r.must(r.hot.NoteDamage(bg, key, hot.Missing))
}

// repaired repairs until there is nothing more to.
func (r *rig) repaired(want int) {
	r.t.Helper()
	got := 0
	for {
		n, err := r.Repair(bg)
		r.must(err)
		if got += n; n == 0 {
			break
		}
	}
	if got != want {
		r.t.Errorf("%d segments were repaired, want %d", got, want)
	}
}

// A hot copy may be the last one. It is kept, and all above it in its stream; others go.
func TestHotCopyOfDamagedSegmentIsKept(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 1, HardBytes: 1 << 30, Target: 1000}})
	for _, id := range []string{"a", "b"} {
		in := r.create(id, "")
		for i := range 4 {
			r.append(id, letters(200)[50*i:50*i+50])
			r.must(r.SealStream(bg, in))
		}
	}
	r.lose(r.of("a", 70))
	r.pass()
	r.marks("a", 50, 200, 200)
	r.marks("b", 200, 200, 200)
	r.evictAll("a") // as an operator does
	r.marks("a", 50, 200, 200)
	r.holds("a", letters(200), 50)
	r.repaired(1)
	r.pass()
	r.marks("a", 200, 200, 200)
	r.holds("a", letters(200), 0)
}

// The edge: a segment is repaired if all of it is hot.
func TestRepairNeedsAllOfTheSegment(t *testing.T) {
	for cut, want := range map[uint64]int{49: 1, 50: 1, 51: 0, 99: 0, 100: 0} {
		r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
		in := r.create("a", "")
		for i := range 3 {
			r.append("a", letters(150)[50*i:50*i+50])
			r.must(r.SealStream(bg, in))
		}
		key := r.of("a", 50)
		r.must(r.hot.Evict(bg, in, cut))
		r.lose(key)
		r.repaired(want)
		r.segments("a", 3)
		state := hot.Live
		if want == 1 {
			state = hot.Retired
		}
		if is := r.object(key); is != state {
			t.Errorf("with cut %d the lost object is in state %d, want %d", cut, is, state)
		}
		r.holds("a", letters(150), 100)
		if want == 1 {
			r.must(r.EvictStream(bg, in))
			r.holds("a", letters(150), 0)
		}
	}
}

// Segments of one stream that meet become one; those of many streams share an object.
func TestRepairsShareObjects(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 10_000}})
	r.few(20, 20)
	for i := range 20 {
		id := fmt.Sprint(i)
		r.must(r.SealStream(bg, r.record(id).ID))
		r.append(id, "and more")
		r.must(r.SealStream(bg, r.record(id).ID))
	}
	for i := range 20 {
		id := fmt.Sprint(i)
		r.lose(r.of(id, 0))
		r.lose(r.of(id, 20))
	}
	r.count(0, "lost")
	puts := r.faults.Calls(fault.Put)
	r.repaired(20)
	if n := r.faults.Calls(fault.Put) - puts; n != 1 {
		t.Errorf("%d objects were written, want 1", n)
	}
	for i := range 20 {
		id := fmt.Sprint(i)
		r.segments(id, 1)
		r.must(r.EvictStream(bg, r.record(id).ID))
		r.holds(id, letters(20 + i)[i:]+"and more", 0)
	}
	r.wait(grace)
	r.count(1, "after the grace")
}

// Of a pack what is hot is repaired, the rest stays named and fails.
func TestPackIsRepairedInPart(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
	key := r.packed(10)
	for i := range 4 {
		r.must(r.EvictStream(bg, r.record(fmt.Sprint(i)).ID))
	}
	r.lose(key)
	r.repaired(6)
	r.wait(grace)
	if is := r.object(key); is != hot.Live {
		t.Errorf("the pack is in state %d", is)
	}
	for i := range 10 {
		id := fmt.Sprint(i)
		r.must(r.EvictStream(bg, r.record(id).ID))
		if i >= 4 {
			r.holds(id, letters(20 + i)[i:], 0)
			continue
		}
		p, err := r.store.Read(bg, named(id), stream.Start{})
		p.Release()
		r.is(err, stream.ErrColdUnavailable, "read of what is lost")
	}
}

func TestCrashBetweenPutAndSwapOfARepair(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
	content := letters(150)
	id := r.create("a", content)
	r.must(r.SealStream(bg, id))
	key := r.of("a", 0)
	r.lose(key)
	r.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.After}) // it is there, nobody knows
	if _, err := r.Repair(bg); err == nil {
		t.Error("a put without an answer was taken for done")
	}
	r.count(1, "the object that nothing names")
	if r.of("a", 0) != key {
		t.Error("the swap was made")
	}
	r.crash()
	r.holds("a", content, 0)
	r.repaired(1)
	r.wait(grace)
	r.wait(grace)
	r.count(1, "after the grace")
	r.must(r.EvictStream(bg, id))
	r.holds("a", content, 0)
}

func TestOutagePutsRepairsOff(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
	id := r.create("a", letters(150))
	r.must(r.SealStream(bg, id))
	r.lose(r.of("a", 0))
	r.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	_, err := r.Repair(bg)
	r.is(err, stream.ErrColdUnavailable, "repair in an outage")
	r.holds("a", letters(150), 0)
	r.faults.Clear()
	r.repaired(1)
}
