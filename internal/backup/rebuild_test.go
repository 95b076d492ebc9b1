package backup_test

import (
	"errors"
	"strings"
	"testing"

	"firn/internal/backup"
	"firn/pkg/stream"
)

func TestRebuild(t *testing.T) {
	r := newRig(t)
	r.create("sealed", strings.Repeat("s", 150))
	r.seal("sealed")
	r.create("unsealed", "unsealed bytes")
	r.create("both", "cold ")
	r.seal("both")
	r.append("both", "hot")
	before, err := r.store.Head(bg, named("both"))
	r.must(err)
	r.copy() // a base
	r.append("both", " and more")
	r.create("late", "in a delta")
	r.copy()
	r.append("both", " lost")
	r.create("never", "copied")
	lost, err := r.store.Head(bg, named("both"))
	r.must(err)
	// What is sealed after the copy is found.
	r.append("sealed", "after the copy")
	r.seal("sealed")
	r.create("young", "made and sealed after the copy")
	r.seal("young")

	r.lose()
	rep, streams := r.rebuild(backup.RebuildOptions{})
	r.holds("sealed", strings.Repeat("s", 150)+"after the copy")
	r.holds("unsealed", "unsealed bytes")
	r.holds("both", "cold hot and more")
	r.holds("late", "in a delta")
	r.holds("young", "made and sealed after the copy")
	if _, err := r.content(named("never")); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("a stream that was in no copy: %v", err)
	}
	if rep.Complete() || rep.Stopped || rep.Streams != 5 || rep.Attached != 14+30 || len(rep.Lost) > 0 || rep.MissingCount > 0 {
		t.Errorf("report: %+v", rep)
	}
	if s := streams[named("both")]; s.Tail != 17 || s.Life <= s.FormerLife {
		t.Errorf("told of %+v", s)
	}
	if s := streams[named("young")]; !s.Unknown || s.Tail != 30 {
		t.Errorf("told of %+v", s)
	}

	// An offset of before counts up to where the copy ends, and not beyond: other
	// bytes may be there now.
	r.append("both", ", new")
	now, err := r.store.Head(bg, named("both"))
	r.must(err)
	if now.Tail.String() <= lost.Tail.String() {
		t.Errorf("offset %s does not come after %s", now.Tail, lost.Tail)
	}
	p, err := r.store.Read(bg, named("both"), stream.At(before.Tail))
	r.must(err)
	if string(p.Data) != " and more, new" || p.From.Life != now.Tail.Life {
		t.Errorf("read %q from %s", p.Data, p.From)
	}
	p.Release()
	if _, err := r.store.Read(bg, named("both"), stream.At(lost.Tail)); !errors.Is(err, stream.ErrOffsetOtherLife) {
		t.Errorf("a lost offset: %v", err)
	}
}

// A server that stops in order loses nothing.
func TestStop(t *testing.T) {
	r := newRig(t)
	r.create("a", "first")
	r.copy()
	r.append("a", " and last")
	r.must(r.runner.Stop(bg))
	r.lose()
	rep, _ := r.rebuild(backup.RebuildOptions{})
	if !rep.Complete() {
		t.Errorf("report: %+v", rep)
	}
	r.holds("a", "first and last")
}

// A rebuilt store can be lost again, before and after its own first copy.
func TestRebuildAgain(t *testing.T) {
	r := newRig(t)
	r.create("a", "one")
	r.copy()
	for range 2 {
		r.lose()
		r.rebuild(backup.RebuildOptions{})
		r.holds("a", "one")
	}
	r.append("a", " two")
	r.copy()
	r.append("a", " lost")
	r.lose()
	r.rebuild(backup.RebuildOptions{})
	r.holds("a", "one two")
}
