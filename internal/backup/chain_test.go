package backup_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/tiertest/disk"
	"firn/tier/hot"
)

// copies makes a base and two deltas, each of which adds a word to a stream.
func copies(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.create("a", "base")
	r.copy()
	r.append("a", " one")
	r.copy()
	r.append("a", " two")
	r.copy()
	return r
}

// object returns the key and the bytes of the n-th object of copies.
func (r *rig) object(n int) (string, []byte) {
	r.t.Helper()
	key := r.keys(r.hot.ID() + "/catalog/")[n]
	b, _, err := blob.ReadAll(bg, r.mem, key, 0, -1)
	r.must(err)
	return key, b
}

func (r *rig) put(key string, b []byte) {
	r.t.Helper()
	_, err := r.mem.Put(bg, key, strings.NewReader(string(b)), blob.PutOptions{})
	r.must(err)
}

func TestDamagedCopies(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(r *rig)
		// holds is what is left of the stream, "" for no copy at all.
		holds   string
		skipped int
		err     error
	}{
		"nothing": {func(*rig) {}, "base one two", 0, nil},
		"last delta gone": {func(r *rig) {
			key, _ := r.object(2)
			r.must(r.mem.Delete(bg, key))
		}, "base one", 0, nil}, // nobody can know that it was there
		"middle gone": {func(r *rig) {
			key, _ := r.object(1)
			r.must(r.mem.Delete(bg, key))
		}, "base", 1, nil},
		"last delta flipped": {func(r *rig) {
			key, b := r.object(2)
			b[len(b)/2] ^= 1
			r.put(key, b)
		}, "base one", 1, nil},
		"middle cut short": {func(r *rig) {
			key, b := r.object(1)
			r.put(key, b[:len(b)-1])
		}, "base", 1, nil},
		"delta under another name": {func(r *rig) {
			_, b := r.object(1)
			key, _ := r.object(2)
			r.put(key, b)
		}, "base one", 1, nil},
		"base flipped": {func(r *rig) {
			key, b := r.object(0)
			b[20] ^= 1
			r.put(key, b)
		}, "", 1, backup.ErrNoCopy},
		"base gone": {func(r *rig) {
			key, _ := r.object(0)
			r.must(r.mem.Delete(bg, key))
		}, "", 0, backup.ErrNoCopy},
		"newer version": {func(r *rig) {
			key, b := r.object(2)
			r.put(key, backup.WithVersion(b, 2))
		}, "", 0, backup.ErrVersion},
		"of another store": {func(r *rig) {
			key, b := r.object(2)
			r.put(key, backup.WithStore(b, "0123456789abcdef"))
		}, "base one", 1, nil},
		"not a key of ours": {func(r *rig) {
			r.put(r.hot.ID()+"/catalog/README", nil)
		}, "base one two", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := copies(t)
			c.harm(r)
			r.lose()
			rep, _, err := r.tryRebuild(backup.RebuildOptions{})
			if !errors.Is(err, c.err) {
				t.Fatalf("rebuild: %v, want %v", err, c.err)
			}
			if c.holds == "" {
				if names, _ := r.disk.FS().List("data"); len(names) > 0 {
					t.Errorf("left on the disk: %v", names)
				}
				return
			}
			if len(rep.Skipped) != c.skipped || c.skipped > 0 && rep.Complete() {
				t.Errorf("report: %+v", rep)
			}
			r.check()
			r.start()
			r.holds("a", c.holds)
		})
	}
}

// An upload that breaks off leaves the copy before it, and is made good by the next.
func TestUploadBreaksOff(t *testing.T) {
	for what, kind := range map[string]fault.Kind{"refused": fault.Before, "reply lost": fault.After} {
		t.Run(what, func(t *testing.T) {
			r := copies(t)
			r.append("a", " three")
			r.blobs.Script(fault.Fault{Op: fault.Put, Kind: kind})
			if _, err := r.runner.Copy(bg); err == nil {
				t.Fatal("the copy was made")
			}
			if st := r.runner.Status(); st.Err == nil {
				t.Error("the status tells of no trouble")
			}
			r.append("a", " four")
			r.copy()
			if st := r.runner.Status(); st.Err != nil {
				t.Errorf("afterwards the status tells of %v", st.Err)
			}
			r.append("a", " five")
			r.copy()
			r.lose()
			rep, _ := r.rebuild(backup.RebuildOptions{})
			r.holds("a", "base one two three four five")
			if len(rep.Skipped) > 0 {
				t.Errorf("report: %+v", rep)
			}
		})
	}
}

// A base that breaks off leaves the generation before it.
func TestBaseBreaksOff(t *testing.T) {
	r := copies(t)
	r.stop()
	r.start()
	r.append("a", " three")
	r.blobs.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
	if _, err := r.runner.Copy(bg); err == nil {
		t.Fatal("the copy was made")
	}
	left := r.disk.Crash()
	r.lose()
	r.rebuild(backup.RebuildOptions{})
	r.holds("a", "base one two")
	r.stop()

	// And without that loss the next one makes it good.
	r.disk = left
	o := r.hotOptions()
	s, err := hot.Open(dir, o)
	r.must(err)
	if s.Fence() == 0 {
		t.Error("no fence")
	}
	r.must(s.Close())
}

// Of two generations the newer one counts, and the older one when that is damaged.
func TestGenerations(t *testing.T) {
	r := copies(t)
	r.stop()
	r.start()
	r.append("a", " three")
	r.copy()
	if key, _ := r.object(3); !strings.HasSuffix(key, "-base.copy") {
		t.Fatalf("the fourth object is %s", key)
	}
	key, b := r.object(3)
	b[len(b)-1] ^= 1
	damaged := b
	r.lose()
	r.rebuild(backup.RebuildOptions{})
	r.holds("a", "base one two three")
	r.stop()

	r.put(key, damaged)
	r.lose()
	rep, _ := r.rebuild(backup.RebuildOptions{})
	r.holds("a", "base one two")
	if len(rep.Skipped) != 1 || rep.Complete() {
		t.Errorf("report: %+v", rep)
	}
}

func TestUntil(t *testing.T) {
	r := newRig(t)
	r.create("a", "base")
	r.copy()
	r.append("a", " one")
	r.copy()
	until := r.now()
	r.append("a", " two")
	r.copy()
	r.create("b", "sealed after that moment")
	r.seal("b")
	r.lose()
	rep, streams := r.rebuild(backup.RebuildOptions{Until: until})
	r.holds("a", "base one")
	if len(streams) != 1 || rep.Complete() || !rep.Copy.Equal(until) {
		t.Errorf("report: %+v of %d streams", rep, len(streams))
	}
	r.stop()
	r.disk = disk.New()
	if _, _, err := r.tryRebuild(backup.RebuildOptions{Until: until.Add(-time.Hour)}); !errors.Is(err, backup.ErrNoCopy) {
		t.Errorf("before the first copy: %v", err)
	}
}

// While somebody may still be there, only who says so takes over.
func TestTakeOver(t *testing.T) {
	r := copies(t)
	r.lose()
	o := backup.RebuildOptions{Blobs: r.blobs, Dir: dir, Hot: r.hotOptions(), Now: r.now}
	r.wait(20*time.Minute - time.Millisecond)
	if _, err := backup.Rebuild(bg, o); !errors.Is(err, backup.ErrAlive) {
		t.Errorf("just before it counts as gone: %v", err)
	}
	r.wait(time.Millisecond)
	if _, err := backup.Rebuild(bg, o); err != nil {
		t.Errorf("later: %v", err)
	}
	r.start()
	r.holds("a", "base one two")
	if _, err := backup.Rebuild(bg, o); !errors.Is(err, hot.ErrNotEmpty) {
		t.Errorf("over a store: %v", err)
	}
}

// Who had the bucket before can write nothing there any more.
func TestZombieIsFenced(t *testing.T) {
	r := copies(t)
	zombie := *r
	r.hot, r.disk = nil, disk.New()
	r.rebuild(backup.RebuildOptions{})
	zombie.append("a", " of a zombie")
	if _, err := zombie.runner.Copy(bg); err == nil {
		t.Error("the zombie has copied its catalog")
	}
	r.holds("a", "base one two")
	zombie.stop()
}

func TestKeys(t *testing.T) {
	r := copies(t)
	for i, want := range []string{"/00000000-0001893456001000-base.copy", "/00000001-0001893456002000-delta.copy", "/00000002-0001893456003000-delta.copy"} {
		if key, _ := r.object(i); key != r.hot.ID()+"/catalog/0000000000000001-00000001"+want {
			t.Errorf("object %d is %s", i, key)
		}
	}
}

// Nothing changed: no call is made.
func TestIdle(t *testing.T) {
	r := copies(t)
	calls := func() (n int) {
		for _, op := range []fault.Op{fault.Put, fault.Get, fault.List, fault.Delete} {
			n += r.blobs.Calls(op)
		}
		return n
	}
	n := calls()
	for range 3 {
		r.copy()
	}
	if more := calls() - n; more > 0 {
		t.Errorf("an idle store has made %d calls", more)
	}
	if ms := r.runner.Status().Ms; ms != uint64(r.now().UnixMilli()) {
		t.Errorf("everything is copied up to %d", ms)
	}
}
