package compactor_test

import (
	"sync"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// sealed makes a stream that is sealed in two segments, [0,150) and [150,300).
func (r *rig) sealed(id string) (content string) {
	r.t.Helper()
	r.create(id, letters(150))
	r.pass()
	r.append(id, letters(150))
	r.pass()
	r.marks(id, 0, 300, 300)
	return letters(150) + letters(150)
}

func TestObjectsAreRemovedWhenTheStoreConfirms(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"not done":         {Kind: fault.Before},
		"done, reply lost": {Kind: fault.After},
		"denied":           {Kind: fault.Before, Err: blob.ErrDenied},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, setup{})
			r.sealed("a")
			keys := r.objects(".zst")
			r.must(r.store.Delete(bg, named("a")))
			r.pass()
			r.count(2, "within the grace")
			f.Op = fault.Delete
			r.faults.Script(f)
			r.clock.Add(grace.Milliseconds())
			if _, err := r.Pass(bg); err == nil {
				t.Error("the pass went well")
			}
			for _, k := range keys {
				if s := r.object(k); s != hot.Retired {
					t.Errorf("unconfirmed object is %v, want retired", s)
				}
			}
			r.wait(24 * time.Hour)
			r.count(0, "in the end")
			for _, k := range keys {
				if s := r.object(k); s != 0 {
					t.Errorf("removed object is %v, want unknown", s)
				}
			}
		})
	}
}

// A sweep takes a page, and says that there is more: sealing has its turn between two.
func TestSweepTakesAPage(t *testing.T) {
	const page = 1000
	r := newRig(t, setup{})
	keys := make([]string, page+1)
	var g sync.WaitGroup
	for i := range keys {
		keys[i] = r.cold.SegmentKey(named("a"), 1, stream.Bytes, 0, uint64(i+1))
		g.Go(func() { r.must(r.hot.Intend(bg, keys[i])) })
	}
	g.Wait()
	r.clock.Add(grace.Milliseconds())
	for _, left := range []int{1, 0} {
		more, err := r.Pass(bg)
		r.must(err)
		intended := 0
		for _, k := range keys {
			if r.object(k) == hot.Intended {
				intended++
			}
		}
		if intended != left || more != (left > 0) {
			t.Fatalf("%d objects are left, more: %t; want %d", intended, more, left)
		}
	}
}

func TestDeletedStreamsSegmentsAreKeptForTheGrace(t *testing.T) {
	r := newRig(t, setup{})
	r.sealed("a")
	r.create("b", letters(150))
	r.pass()
	r.must(r.store.Delete(bg, named("a")))
	r.pass()
	r.wait(grace - time.Millisecond)
	r.count(3, "just before the grace is over")
	r.wait(time.Millisecond)
	r.count(1, "after the grace")
	r.holds("b", letters(150), 0)
}

func TestTrimmedHistoryIsKept(t *testing.T) {
	r := newRig(t, setup{})
	content := r.sealed("a")
	r.publish("a", 149)
	r.pass()
	r.wait(2 * keepHistory)
	r.count(2, "a byte of both segments is needed")
	r.publish("a", 150)
	r.pass()
	r.wait(keepHistory - time.Millisecond)
	r.count(2, "just before the time is over")
	r.wait(time.Millisecond)
	r.count(1, "after it")
	r.holds("a", content, 150)
	if n := len(r.objects(".snapshot")); n != 1 {
		t.Errorf("%d snapshots, want the last one", n)
	}
}

func TestTrimmedHistoryIsKeptForEver(t *testing.T) {
	r := newRig(t, setup{keepHistory: -1})
	r.sealed("a")
	r.publish("a", 300)
	r.pass()
	r.wait(200 * 365 * 24 * time.Hour)
	r.count(2, "for ever")
	if n := r.record("a").Segments; n != 0 {
		t.Errorf("the stream still names %d segments", n)
	}
	// A deleted stream's are not history.
	r.sealed("b")
	r.must(r.store.Delete(bg, named("b")))
	r.pass()
	r.wait(grace)
	r.count(2, "after b is deleted")
}

func TestForksKeepWhatTheyNeed(t *testing.T) {
	r := newRig(t, setup{})
	content := r.sealed("source")
	r.evictAll("source")
	r.forkAt("fork", "source", 200)
	r.publish("source", 300)
	r.pass()
	r.wait(2 * keepHistory)
	r.count(2, "while the fork needs them")
	r.holds("fork", content[:200], 0)
	r.must(r.store.Delete(bg, named("source")))
	r.pass()
	r.wait(2 * keepHistory)
	r.holds("fork", content[:200], 0)
	r.must(r.store.Delete(bg, named("fork")))
	r.pass()
	r.wait(grace)
	r.count(0, "when both are gone")
	if n := r.hot.HotBytes(); n != 0 {
		t.Errorf("%d hot bytes are left", n)
	}
}

func TestReplacedSnapshotsAreKeptForTheGrace(t *testing.T) {
	r := newRig(t, setup{})
	r.create("a", letters(50))
	r.publish("a", 10)
	r.publish("a", 10)
	r.wait(grace - time.Millisecond)
	if n := len(r.objects(".snapshot")); n != 2 {
		t.Errorf("%d snapshots within the grace, want 2", n)
	}
	r.wait(time.Millisecond)
	if n := len(r.objects(".snapshot")); n != 1 {
		t.Errorf("%d snapshots after the grace, want 1", n)
	}
}

// An object that the catalog never intended is none of the sweep's business.
func TestUnknownObjectsStay(t *testing.T) {
	r := newRig(t, setup{})
	r.sealed("a")
	_, err := r.blobs.Put(bg, r.hot.ID()+"/bucket=default/stream=a/unknown.zst", body("x"), blob.PutOptions{})
	r.must(err)
	r.must(r.store.Delete(bg, named("a")))
	r.pass()
	r.wait(10 * grace)
	r.count(1, "the unknown one")
}
