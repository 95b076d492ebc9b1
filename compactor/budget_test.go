package compactor_test

import (
	"fmt"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
)

func TestBudgetIsKept(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 1000, Target: 100}})
	want := map[string]string{}
	for i := range 100 {
		id := fmt.Sprint(i % 7)
		if i < 7 {
			r.create(id, "")
		}
		body := letters(17 + i)
		r.append(id, body)
		want[id] += body
		r.clock.Add(1000)
		r.pass()
		if n := r.hot.HotBytes(); n > 1000 {
			t.Fatalf("%d hot bytes after append %d, the budget is 1000", n, i)
		}
	}
	if n := r.hot.HotBytes(); n < 500 {
		t.Errorf("%d hot bytes of 1000: more was given up than was asked for", n)
	}
	for id, content := range want {
		r.holds(id, content, 0)
	}
}

func TestWithinTheBudgetAllStaysHot(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 300, Target: 100}})
	r.sealed("a")
	r.wait(time.Hour)
	r.marks("a", 0, 300, 300)
	r.append("a", "!") // one byte over: the oldest segment goes
	r.pass()
	r.marks("a", 150, 300, 301)
}

func TestMinAgeYieldsHalfWayToTheHardLimit(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 100, HardBytes: 500, Target: 100, MinAge: time.Hour}})
	r.create("a", letters(150))
	r.pass()
	r.append("a", letters(150))
	r.pass()
	r.marks("a", 0, 300, 300) // exactly half-way: both are young
	r.clock.Add(time.Hour.Milliseconds() - 1)
	r.pass()
	r.marks("a", 0, 300, 300)
	r.append("a", "!")
	r.pass()
	r.marks("a", 300, 300, 301) // pressed
}

func TestOldBytesGoWhenTheyAreOfAge(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 100, HardBytes: 5000, Target: 100, MinAge: time.Hour}})
	r.create("a", letters(150))
	r.pass()
	r.wait(time.Hour - time.Millisecond)
	r.marks("a", 0, 150, 150)
	r.wait(time.Millisecond)
	r.marks("a", 150, 150, 150)
}

func TestSealsByAge(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 100, MaxAge: time.Minute}})
	r.create("a", "young and small")
	r.wait(time.Minute - time.Millisecond)
	r.marks("a", 0, 0, 15)
	r.append("a", "!") // the age is that of the oldest byte
	r.wait(time.Millisecond)
	r.marks("a", 0, 16, 16)
}

// Closed streams are sealed at once, but small ones wait to share an object.
func TestClosedStreamsAreSealedAtOnce(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 100, MaxAge: time.Minute}})
	r.create("a", letters(25))
	r.create("b", letters(24))
	r.closeStream("a")
	r.closeStream("b")
	r.pass()
	r.marks("a", 0, 25, 25)
	r.marks("b", 0, 0, 24)
	r.wait(time.Minute)
	r.marks("b", 0, 24, 24)
}

// While the hot tier cannot be brought down otherwise, the oldest streams are sealed
// whatever they have.
func TestPressureSealsBelowTheTarget(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 100, Target: 1000}})
	for i := range 20 {
		r.create(fmt.Sprint(i), letters(10))
		r.clock.Add(1000)
	}
	r.pass()
	if n := r.hot.HotBytes(); n != 100 {
		t.Errorf("%d hot bytes, want the budget, 100", n)
	}
	for i := range 20 {
		if m := r.record(fmt.Sprint(i)).Marks; (m.Cut == 10) != (i < 10) {
			t.Errorf("stream %d has %+v: the oldest ten should be cold", i, m)
		}
	}
}

// A stream that cannot be sealed used to count for the pressure that it did not
// relieve, and the others were left as they were.
func TestPressureSealsOthersWhenTheOldestIsStuck(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 100, Target: 1000}, unique: func() string { return "same" }})
	id := r.create("oldest", letters(100))
	r.stick("oldest", id, 100)
	r.clock.Add(1000)
	for i := range 10 {
		r.create(fmt.Sprint(i), letters(10))
		r.clock.Add(1000)
	}
	for range 3 {
		r.pass()
	}
	if n := r.hot.HotBytes(); n != 100 {
		t.Errorf("%d hot bytes, want the budget, 100", n)
	}
	r.marks("oldest", 0, 0, 100)
}

// stick makes that the next segment of a stream cannot be sealed: its key is taken.
func (r *rig) stick(name string, id stream.ID, to uint64) {
	r.t.Helper()
	r.must(r.hot.Intend(bg, r.cold.SegmentKey(named(name), id, stream.Bytes, 0, to)))
}

func TestOneStuckStreamDoesNotStopOthers(t *testing.T) {
	r := newRig(t, setup{unique: func() string { return "same" }})
	for i := range 5 {
		id := r.create(fmt.Sprint(i), letters(150))
		if i == 2 {
			r.stick("2", id, 150)
		}
	}
	r.pass()
	for i := range 5 {
		sealed := uint64(150)
		if i == 2 {
			sealed = 0
		}
		r.marks(fmt.Sprint(i), 0, sealed, 150)
	}
	if s := r.Status(); s.Stuck != 1 {
		t.Errorf("status %+v, want one stuck stream", s)
	}
}

// A stream that is deleted used to be counted as stuck for ever.
func TestStuckStreamIsForgottenWhenItIsDeleted(t *testing.T) {
	r := newRig(t, setup{unique: func() string { return "same" }})
	r.stick("a", r.create("a", letters(150)), 150)
	r.pass()
	if s := r.Status(); s.Stuck != 1 {
		t.Fatalf("status %+v, want one stuck stream", s)
	}
	r.must(r.store.Delete(bg, named("a")))
	r.pass()
	if s := r.Status(); s.Stuck != 0 {
		t.Errorf("status %+v, want none stuck", s)
	}
}

// Trouble of the object store with the objects of one stream used to end every pass
// before the streams after it had their turn.
func TestObjectStoreThatRefusesOneStreamDoesNotStopOthers(t *testing.T) {
	r := newRig(t, setup{concurrency: 1})
	for i := range 9 {
		r.create(fmt.Sprint(i), letters(150))
	}
	v := r.hot.View()
	ready, err := v.Ready(0, 1)
	r.must(err)
	first, err := v.Incarnation(ready[0])
	v.Close()
	r.must(err)
	r.faults.Script(fault.Fault{Op: fault.Put, Key: "stream=" + first.Name.ID + "/", Kind: fault.Before, Times: fault.Always})
	for range 9 {
		if _, err := r.Pass(bg); err == nil {
			t.Error("the pass went well")
		}
	}
	for i := range 9 {
		rec := r.record(fmt.Sprint(i))
		if (rec.Sealed == 150) != (rec.ID != first.ID) {
			t.Errorf("stream %d has %+v", i, rec.Marks)
		}
	}
	r.faults.Clear()
	r.pass()
	r.marks(first.Name.ID, 0, 150, 150)
}
