package backup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
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

// A segment that was written for a stream which was deleted before the copy does not
// bring it back.
func TestDeletedStreamStaysAway(t *testing.T) {
	r := newRig(t)
	i := r.create("a", "bytes that are sealed while the stream is deleted")
	s, err := r.compactor.Build(i.ID)
	r.must(err)
	r.must(s.Intend(bg))
	r.must(s.Upload(bg))
	s.Release()
	r.must(r.store.Delete(bg, named("a")))
	r.copy()
	r.lose()
	rep, streams := r.rebuild(backup.RebuildOptions{})
	if len(streams) > 0 || len(rep.Lost) != 1 || rep.Lost[0].Stream != "default/a" {
		t.Errorf("report: %+v, streams: %v", rep, streams)
	}
}

// A stream that was deleted and made again after the copy is what it was last.
func TestSuccessorTakesTheName(t *testing.T) {
	r := newRig(t)
	r.create("a", "first of the name")
	r.seal("a")
	r.copy()
	r.must(r.store.Delete(bg, named("a")))
	r.create("a", "second")
	r.seal("a")
	r.lose()
	_, streams := r.rebuild(backup.RebuildOptions{})
	r.holds("a", "second")
	if s := streams[named("a")]; !s.Unknown {
		t.Errorf("told of %+v", s)
	}
	r.must(r.store.Delete(bg, named("a")))
	r.copy()
	r.lose()
	r.rebuild(backup.RebuildOptions{})
	if _, err := r.content(named("a")); !errors.Is(err, stream.ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
}

// An object that the copy names and that is not there is told.
func TestMissingObject(t *testing.T) {
	r := newRig(t)
	r.create("a", "sealed")
	r.seal("a")
	r.copy()
	key := r.keys(r.hot.ID() + "/bucket=")[0]
	r.must(r.mem.Delete(bg, key))
	r.lose()
	rep, _ := r.rebuild(backup.RebuildOptions{})
	if rep.MissingCount != 1 || len(rep.Missing) != 1 || rep.Missing[0] != key || rep.Complete() {
		t.Errorf("report: %+v", rep)
	}
}

// Nothing is removed that a copy still needs, and everything is in the end.
func TestSweepWaitsForCopy(t *testing.T) {
	r := newRig(t)
	r.create("a", "sealed")
	r.seal("a")
	pass := func(want int, when string) {
		t.Helper()
		_, err := r.compactor.Pass(bg)
		r.must(err)
		if n := len(r.keys(r.hot.ID() + "/bucket=")); n != want {
			t.Errorf("%s there are %d objects, want %d", when, n, want)
		}
	}
	r.copy()
	r.must(r.store.Delete(bg, named("a")))
	pass(1, "after the deletion")
	r.wait(grace)
	pass(1, "after the grace, without a copy")
	r.blobs.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
	if _, err := r.runner.Copy(bg); err == nil {
		t.Fatal("the copy was made")
	}
	pass(1, "after a copy that failed")
	r.copy()
	pass(0, "after a copy")
	// A new process does not know what was copied, until it has made a base.
	r.create("b", "sealed")
	r.seal("b")
	r.must(r.store.Delete(bg, named("b")))
	pass(1, "after the second deletion")
	r.copy()
	r.stop()
	r.wait(grace)
	r.start()
	pass(1, "after a restart")
	r.copy()
	pass(0, "after the base")
}

// Superseded generations go when the grace is over, but for the newest two.
func TestOldGenerationsGo(t *testing.T) {
	r := newRig(t)
	generations := func() int {
		found := make(map[string]bool)
		for _, k := range r.keys(r.hot.ID() + "/catalog/") {
			found[strings.Split(k, "/")[2]] = true
		}
		return len(found)
	}
	for want := range 4 {
		r.create(string(rune('a'+want)), "x")
		r.copy()
		if n := generations(); n != want+1 {
			t.Fatalf("there are %d generations, want %d", n, want+1)
		}
		r.stop()
		r.start()
	}
	r.wait(grace - 3*time.Second)
	r.create("e", "x")
	r.copy()
	if n := generations(); n != 5-1 {
		t.Errorf("before the grace of the second is over there are %d generations", n)
	}
	r.wait(grace)
	r.append("e", "x")
	r.copy()
	if n := generations(); n != 2 {
		t.Errorf("in the end there are %d generations", n)
	}
	r.lose()
	r.rebuild(backup.RebuildOptions{})
	r.holds("e", "xx")
}

// archived copies a bucket to another one.
func (r *rig) archived(to blob.Store) *backup.Archived {
	r.t.Helper()
	done, err := backup.Archive(bg, backup.ArchiveOptions{From: r.blobs, To: to})
	r.must(err)
	return done
}

func TestArchiveAndRestore(t *testing.T) {
	r := newRig(t)
	r.create("src", "of a fork")
	r.seal("src")
	r.create("keep", "wanted, cold")
	r.seal("keep")
	r.append("keep", " and hot")
	_, _, err := r.store.Create(bg, tier.CreateRequest{Name: named("kept-fork"), Fork: &tier.ForkRequest{Source: named("src")}})
	r.must(err)
	r.append("kept-fork", ", forked")
	r.create("other", "not wanted")
	r.seal("other")
	r.copy()
	r.append("other", ", after the copy")
	r.seal("other")

	to := mem.New(mem.Options{Now: r.now})
	if done := r.archived(to); done.Objects != 3 || done.Copied != 3 || len(done.Missing) > 0 || !done.Copy.Equal(r.now()) {
		t.Errorf("archived %+v", done)
	}
	if done := r.archived(to); done.Objects != 3 || done.Copied != 0 {
		t.Errorf("archived again %+v", done)
	}
	r.copy()
	if done := r.archived(to); done.Objects != 4 || done.Copied != 1 {
		t.Errorf("archived what is new: %+v", done)
	}

	for what, from := range map[string]blob.Store{"archive": to, "bucket itself": r.blobs} {
		t.Run(what, func(t *testing.T) {
			o := *r // another store, beside the first
			o.t, o.disk, o.mem, o.hot = t, disk.New(), mem.New(mem.Options{Now: r.now}), nil
			o.blobs = fault.New(o.mem)
			ro := backup.RestoreOptions{
				ArchiveOptions: backup.ArchiveOptions{From: from, To: o.blobs}, Dir: dir, Hot: o.hotOptions(),
				Wanted: func(n stream.Name) bool { return strings.HasPrefix(n.ID, "ke") },
			}
			rep, err := backup.Restore(bg, ro)
			o.must(err)
			if !rep.Complete() || rep.Streams != 2 {
				t.Errorf("report: %+v", rep)
			}
			o.check()
			o.start()
			o.holds("keep", "wanted, cold and hot")
			o.holds("kept-fork", "of a fork, forked")
			if _, err := o.content(named("src")); !errors.Is(err, stream.ErrGone) {
				t.Errorf("the source of a fork: %v", err)
			}
			if _, err := o.content(named("other")); !errors.Is(err, stream.ErrNotFound) {
				t.Errorf("what is not wanted: %v", err)
			}
			if n := len(o.keys(o.hot.ID() + "/bucket=")); n != 2 {
				t.Errorf("the bucket has %d objects", n)
			}
			o.copy()
			o.lose()
			o.rebuild(backup.RebuildOptions{})
			o.holds("keep", "wanted, cold and hot")
			o.stop()
			o.disk = disk.New()
			ro.Hot = o.hotOptions()
			if _, err := backup.Restore(bg, ro); !errors.Is(err, cold.ErrForeign) {
				t.Errorf("into a bucket that has a store: %v", err)
			}
		})
	}
}

// An object that is damaged is not brought along as if it were good.
func TestArchiveOfDamagedObject(t *testing.T) {
	r := newRig(t)
	r.create("a", "sealed")
	r.seal("a")
	r.copy()
	key := r.keys(r.hot.ID() + "/bucket=")[0]
	b, _, err := blob.ReadAll(bg, r.mem, key, 0, -1)
	r.must(err)
	b[5] ^= 1
	r.put(key, b)
	to := mem.New(mem.Options{})
	if _, err := backup.Archive(bg, backup.ArchiveOptions{From: r.blobs, To: to}); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("archived: %v", err)
	}
	r.must(r.mem.Delete(bg, key))
	if done := r.archived(to); len(done.Missing) != 1 {
		t.Errorf("archived %+v", done)
	}
}
