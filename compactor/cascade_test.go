package compactor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
)

// family is a chain of forks, and one beside it, whose bytes lie in both tiers:
//
//	a: 150 bytes, all cold
//	├── b: leaves a at 120, 130 bytes of its own cold and 10 hot
//	│   └── c: leaves b at 200, 20 bytes hot
//	└── d: leaves a at 40, 110 bytes of its own cold
type family struct {
	*rig
	content map[string]string
	deleted []string
}

func newFamily(t *testing.T) *family {
	f := &family{rig: newRig(t, setup{}), content: map[string]string{}}
	all := letters(600)
	f.content["a"] = all[:150]
	f.create("a", f.content["a"])
	grow := func(id, source string, at uint64, own string) {
		f.forkAt(id, source, at)
		f.append(id, own)
		f.content[id] = f.content[source][:at] + own
	}
	cool := func() {
		f.pass()
		for id := range f.content {
			f.must(f.EvictStream(bg, f.record(id).ID))
		}
	}
	grow("b", "a", 120, all[150:280])
	grow("d", "a", 40, all[300:410])
	cool()
	f.append("b", all[280:290])
	f.content["b"] += all[280:290]
	grow("c", "b", 200, all[500:520])
	for id, cut := range map[string]uint64{"a": 150, "b": 250, "c": 200, "d": 150} {
		if got := f.record(id).Cut; got != cut {
			t.Fatalf("%s has cut %d, want %d", id, got, cut)
		}
	}
	return f
}

func (f *family) delete(id string) {
	f.t.Helper()
	f.must(f.store.Delete(bg, named(id)))
	f.deleted = append(f.deleted, id)
}

// check reads all that is there, and looks at what is not: a stream is 410 while a
// fork of it, or a fork of that, is there, and 404 from then on.
func (f *family) check(when string) {
	f.t.Helper()
	gone := func(id string) bool { return slices.Contains(f.deleted, id) }
	for id, needed := range map[string]bool{
		"a": !gone("b") || !gone("c") || !gone("d"), "b": !gone("c"), "c": false, "d": false,
	} {
		if !gone(id) {
			f.holds(id, f.content[id], 0)
			continue
		}
		want := stream.ErrNotFound
		if needed {
			want = stream.ErrGone
		}
		if _, err := f.store.Head(bg, named(id)); !errors.Is(err, want) {
			f.t.Errorf("%s: %s is %v, want %v", when, id, err, want)
		}
	}
	problems, err := f.disk.Problems("hot")
	f.must(err)
	for _, p := range problems {
		f.t.Errorf("%s: %v", when, p)
	}
}

// cascade takes the family apart, its members before and behind those that need them.
var cascade = []struct {
	name string
	do   func(*family)
}{
	{"delete a", func(f *family) { f.delete("a") }},
	{"delete b", func(f *family) { f.delete("b") }},
	{"pass beside forks", func(f *family) { f.wait(2 * grace) }},
	{"delete c and so b", func(f *family) { f.delete("c") }},
	{"let go of b and c", func(f *family) { f.pass() }},
	{"remove b's objects", func(f *family) { f.wait(2 * grace) }},
	{"delete d and so a", func(f *family) { f.delete("d") }},
	{"let go of a and d", func(f *family) { f.pass() }},
	{"remove the rest", func(f *family) { f.wait(2 * grace) }},
}

// Deleting forks goes on, after a crash between any two steps of it, where it was: what
// somebody needs stays readable, and in the end nothing is left.
func TestCrashWithinACascadeOfDeletions(t *testing.T) {
	for n := range len(cascade) + 1 {
		name := "after every step"
		if n < len(cascade) {
			name = "after: " + cascade[n].name
		}
		t.Run(name, func(t *testing.T) {
			f := newFamily(t)
			for i, step := range cascade {
				step.do(f)
				f.check(step.name)
				if i == n || n == len(cascade) {
					f.crash()
					f.check(step.name + ", crash")
				}
			}
			f.finish()
		})
	}
}

// finish fails the test unless nothing of the family is left and its names are free.
func (f *family) finish() {
	f.t.Helper()
	f.wait(2 * grace)
	f.count(0, "in the end")
	for id := range f.content {
		f.create(id, "new "+id)
		f.holds(id, "new "+id, 0)
	}
}

// Objects are removed one call after the other: the process ends before each call, and
// after it but before its answer.
func TestCrashWithinTheRemovalOfAFamily(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Before, fault.After} {
		for skip := range 3 {
			t.Run(fmt.Sprintf("%v, call %d", kind, skip), func(t *testing.T) {
				f := newFamily(t)
				for _, id := range []string{"a", "b", "c", "d"} {
					f.delete(id)
				}
				f.pass()
				f.check("let go of")
				f.clock.Add(2 * grace.Milliseconds())
				f.faults.Script(fault.Fault{Op: fault.Delete, Kind: kind, Skip: skip, Times: fault.Always})
				for range 3 {
					if more, err := f.Pass(bg); err != nil || !more {
						break
					}
				}
				f.crash()
				f.faults.Clear()
				f.check("crash")
				f.finish()
			})
		}
	}
}
