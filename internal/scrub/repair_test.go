package scrub_test

import (
	"bytes"
	"testing"
	"time"

	"firn/internal/blob/fault"
	"firn/internal/scrub"
	"firn/tier/hot"
)

// Whatever becomes of an object, its hot copy comes into its place. The old object
// stays for the grace.
func TestRepairFromHotCopy(t *testing.T) {
	for kind, make := range map[string]func(r *rig) []string{
		"segment": func(r *rig) []string { r.sealed("a"); return []string{"a"} },
		"pack":    func(r *rig) []string { r.packed("a", "b", "c"); return []string{"a", "b", "c"} },
	} {
		for what, damage := range damages {
			t.Run(kind+" "+what, func(t *testing.T) {
				r := newRig(t, scrub.Options{})
				other := r.bytes(r.sealed("z"))
				ids := make(r)
				key := r.object("a")
				r.pass(period)
				r.put(key, damage.do(r.bytes(key), bytes.Clone(other)))
				if got := r.verify(); len(got) != 1 || got[0] != key {
					t.Errorf("verify finds %q before", got)
				}
				r.pass(period)
				r.damaged()
				r.logged(1, "level=ERROR", "object is damaged", key)
				r.logged(1, "not needed any more", key)
				if n := r.metric("firn_compactor_rewrites_total", "reason", "repair", "result", "done"); n != float64(len(ids)) {
					t.Errorf("%v segments were repaired, want %d", n, len(ids))
				}
				if r.object("a") == key {
					t.Error("the catalog names the damaged object")
				}
				v := r.hot.View()
				state, err := v.Object(key)
				v.Close()
				if err != nil || state != hot.Retired {
					t.Errorf("the damaged object is in state %d, %v", state, err)
				}
				r.evict(ids...)
				for _, id := range ids {
					r.holds(id)
				}
			})
		}
	}
}

// Of a pack each stream with a hot copy is repaired. The others stay named and are
// reported, until the object is put back.
func TestPackIsRepairedInPart(t *testing.T) {
	r := newRig(t, scrub.Options{})
	key := r.packed("a", "b", "c")
	r.evict("b")
	was := r.bytes(key)
	r.put(key, nil)
	r.pass(period)
	r.damaged(key)
	if r.object("a") == key || r.object("c") == key || r.object("b") != key {
		t.Error("other segments were repaired than could be")
	}
	_, err := r.compactor.Pass(bg)
	r.must(err)
	r.put(key, was)
	r.scrub.Recheck()
	r.work()
	r.damaged()
	r.evict("a", "c")
	for _, id := range []string{"a", "b", "c"} {
		r.holds(id)
	}
}

// A snapshot has no hot copy, nor has what was evicted: these are tried once.
func TestWhatHasNoHotCopyIsLeft(t *testing.T) {
	r := newRig(t, scrub.Options{})
	snapshot, segment := r.shot("a"), r.sealed("b")
	r.evict("b")
	r.put(snapshot, nil)
	r.put(segment, nil)
	puts := r.faults.Calls(fault.Put)
	r.pass(3 * period)
	r.damaged(snapshot, segment)
	if n := r.faults.Calls(fault.Put) - puts; n != 0 {
		t.Errorf("%d objects were written", n)
	}
	r.logged(2, "level=ERROR")
}

func TestRepairWaitsForTheStore(t *testing.T) {
	r := newRig(t, scrub.Options{})
	key := r.sealed("a")
	r.put(key, nil)
	r.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	r.pass(time.Hour)
	r.damaged(key)
	r.logged(1, "cannot repair")
	// A compactor that is over its budget does not give the last copy up.
	r.evict("a")
	r.holds("a")
	if cut := r.record("a").Cut; cut != 0 {
		t.Errorf("the hot copy was given up to %d", cut)
	}
	r.faults.Clear()
	r.pass(time.Hour)
	r.damaged()
	r.evict("a")
	r.holds("a")
}

// A crash after the new object was written and before it was named leaves the damaged
// one named; it is repaired then.
func TestCrashBetweenPutAndSwap(t *testing.T) {
	r := newRig(t, scrub.Options{})
	key := r.sealed("a")
	r.put(key, nil)
	r.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.After})
	for {
		_, err := r.scrub.Step(bg)
		r.must(err)
		if len(r.faults.Unfired()) == 0 {
			break
		}
	}
	r.crash(nil)
	if r.object("a") != key || r.scrub.Status().Objects() != 0 {
		t.Error("the swap was made")
	}
	r.work()
	r.damaged()
	r.logged(1, "object is damaged")
	r.evict("a")
	r.holds("a")
	for range 3 {
		r.pass(grace)
		_, err := r.compactor.Pass(bg)
		r.must(err)
	}
	r.damaged()
}

// Many damaged objects share few repairs, also when they are found one by one.
func TestManyRepairs(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for i := range 20 {
		r.put(r.sealed(letter(i)), nil)
	}
	puts := r.faults.Calls(fault.Put)
	r.pass(time.Hour)
	for i := range 20 {
		r.scrub.Suspect(r.object(letter(i)))
	}
	r.pass(time.Hour)
	r.damaged()
	if n := r.faults.Calls(fault.Put) - puts; n > 15 {
		t.Errorf("%d objects were written for 20 that were lost within minutes", n)
	}
	for i := range 20 {
		r.evict(letter(i))
		r.holds(letter(i))
	}
	if n := r.metric("firn_compactor_rewrites_total", "reason", "repair", "result", "done"); n != 20 {
		t.Errorf("%v repairs", n)
	}
}
