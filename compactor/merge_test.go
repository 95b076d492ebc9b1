package compactor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// slow is a policy under which 8 segments of up to 63 bytes are merged.
var slow = compactor.Policy{Target: 1000, MaxAge: time.Minute}

// slowStream creates a stream of n segments of 10 bytes each and returns its content.
// Nothing is merged yet.
func (r *rig) slowStream(id string, n int) string {
	r.t.Helper()
	content := letters(10 * n)
	in := r.create(id, "")
	for i := range n {
		r.append(id, content[10*i:10*i+10])
		r.must(r.SealStream(bg, in))
	}
	return content
}

func (r *rig) segments(id string, want int) {
	r.t.Helper()
	if n := r.record(id).Segments; n != uint64(want) {
		r.t.Errorf("%s has %d segments, want %d", id, n, want)
	}
}

func TestSmallSegmentsAreMerged(t *testing.T) {
	for _, cut := range []uint64{0, 20, 25, 80} {
		t.Run(fmt.Sprintf("evicted up to %d", cut), func(t *testing.T) {
			r := newRig(t, setup{policy: slow})
			r.slowStream("a", 7)
			r.pass()
			r.segments("a", 7)
			r.append("a", letters(80)[70:])
			content := letters(80)
			r.must(r.SealStream(bg, r.record("a").ID))
			r.must(r.hot.Evict(bg, r.record("a").ID, cut))
			r.wait(time.Minute)
			r.segments("a", 1)
			r.marks("a", cut, 80, 80)
			r.holds("a", content, 0)
			r.count(9, "while the old ones are kept")
			r.wait(grace - time.Millisecond)
			r.count(9, "just before the grace is over")
			r.wait(time.Millisecond)
			r.count(1, "after the grace")
			r.must(r.EvictStream(bg, r.record("a").ID))
			r.holds("a", content, 0)
		})
	}
}

// A reader that has looked the segments up before they were merged reads on, and after
// the grace it looks again.
func TestMergeDisturbsNoReader(t *testing.T) {
	r := newRig(t, setup{policy: slow})
	content := r.slowStream("a", 8)
	id := r.record("a").ID
	r.must(r.EvictStream(bg, id))
	v := r.hot.View()
	refs, err := v.Segments(id, 0, 80, 100)
	v.Close()
	r.must(err)
	r.wait(time.Minute)
	r.segments("a", 1)
	r.wait(grace - time.Millisecond)
	for _, ref := range refs {
		got, err := r.cold.Read(bg, nil, ref, ref.From, ref.To)
		if err != nil || string(got) != content[ref.From:ref.To] {
			t.Errorf("old segment at %d: %q, %v", ref.From, got, err)
		}
	}
	r.holds("a", content, 0)
	r.wait(time.Millisecond)
	r.count(1, "after the grace")
	for from := range uint64(80) {
		r.holds("a", content, from)
	}
}

func TestMergesShareObjects(t *testing.T) {
	r := newRig(t, setup{policy: slow})
	contents := map[string]string{}
	for i := range 10 {
		contents[fmt.Sprint(i)] = r.slowStream(fmt.Sprint(i), 8)
	}
	puts := r.faults.Calls(fault.Put)
	r.wait(time.Minute)
	if n := r.faults.Calls(fault.Put) - puts; n != 1 {
		t.Errorf("%d puts for ten merges, want 1", n)
	}
	r.wait(grace)
	r.count(1, "after the grace")
	for id, content := range contents {
		r.segments(id, 1)
		r.must(r.EvictStream(bg, r.record(id).ID))
		r.holds(id, content, 0)
	}
}

// Over a long time the number of segments stays small, and each byte is written a few
// times only.
func TestMergesAreFewAndLarge(t *testing.T) {
	r := newRig(t, setup{policy: slow})
	id, content := r.create("a", ""), ""
	const seals = 600
	for i := range seals {
		body := letters(10 + i%7)
		content += body
		r.append("a", body)
		r.must(r.SealStream(bg, id))
		r.wait(time.Minute)
		// 7 of each class below half a target, 8 bytes and 64, and the large ones.
		if n := r.record("a").Segments; n > uint64(3*8+len(content)/500) {
			t.Fatalf("%d segments after %d seals", n, i)
		}
	}
	r.must(r.EvictStream(bg, id))
	r.holds("a", content, 0)
	if n := r.metric("firn_compactor_rewritten_bytes_total"); n > 3*float64(len(content)) {
		t.Errorf("%v bytes were written again, of %d", n, len(content))
	}
	r.wait(grace)
	r.count(int(r.record("a").Segments), "after the grace")
}

// merge prepares a stream to merge and builds the merge.
func (r *rig) merge(id string) *compactor.Sealing {
	r.t.Helper()
	s, err := r.BuildMerge(bg, r.record(id).ID)
	r.must(err)
	if s == nil {
		r.t.Fatal("there is nothing to merge")
	}
	return s
}

func TestCrashBetweenAnyTwoStepsOfAMerge(t *testing.T) {
	for n := range 4 {
		t.Run(fmt.Sprintf("after %d steps", n), func(t *testing.T) {
			r := newRig(t, setup{policy: slow})
			content := r.slowStream("a", 8)
			s := r.merge("a")
			for _, step := range steps[:n] {
				r.must(step.do(r, s))
			}
			r.crash()
			r.holds("a", content, 0)
			r.pass()
			r.segments("a", 1)
			r.wait(grace)
			r.wait(grace)
			r.wait(grace)
			r.count(1, "after the grace")
			r.must(r.EvictStream(bg, r.record("a").ID))
			r.holds("a", content, 0)
		})
	}
}

func TestRivalsMergeTheSameStream(t *testing.T) {
	for _, order := range []string{"aaabbb", "ababab", "aabbba", "abbbaa", "abbaba"} {
		t.Run(order, func(t *testing.T) {
			r := newRig(t, setup{policy: slow})
			content := r.slowStream("a", 8)
			rivals := map[rune]*compactor.Sealing{'a': r.merge("a"), 'b': r.merge("a")}
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
			r.count(1, "after the grace")
			r.must(r.EvictStream(bg, r.record("a").ID))
			r.holds("a", content, 0)
		})
	}
}

func TestStreamChangesBetweenMergeAndCommit(t *testing.T) {
	for what, tt := range map[string]struct {
		change   func(*rig)
		conflict bool
		segments int
	}{
		"appended and sealed":                  {func(r *rig) { r.append("a", "more"); r.must(r.SealStream(bg, r.record("a").ID)) }, false, 2},
		"deleted":                              {func(r *rig) { r.must(r.store.Delete(bg, named("a"))); r.create("a", "new") }, true, 0},
		"evicted":                              {func(r *rig) { r.must(r.hot.Evict(bg, r.record("a").ID, 35)) }, false, 1},
		"snapshot in the first segment":        {func(r *rig) { r.publish("a", 5) }, false, 1},
		"snapshot behind the first":            {func(r *rig) { r.publish("a", 10) }, true, 8},
		"snapshot behind the first, let go of": {func(r *rig) { r.publish("a", 10); r.pass() }, true, 7},
		"snapshot at the end":                  {func(r *rig) { r.publish("a", 80); r.pass() }, true, 0},
		"forked":                               {func(r *rig) { r.forkAt("f", "a", 40) }, false, 1},
		"deleted with a fork":                  {func(r *rig) { r.forkAt("f", "a", 40); r.must(r.store.Delete(bg, named("a"))) }, false, -1},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
			r.pass() // the first round
			content := r.slowStream("a", 8)
			s := r.merge("a")
			r.must(s.Intend(bg))
			r.must(s.Upload(bg))
			tt.change(r)
			err := s.Commit(bg)
			if tt.conflict != errors.Is(err, hot.ErrConflict) {
				t.Fatalf("commit: %v, conflict wanted: %t", err, tt.conflict)
			}
			if err != nil {
				r.must(s.Abandon(bg))
			}
			if tt.segments >= 0 {
				r.segments("a", tt.segments)
			}
			switch what {
			case "deleted":
				content = "new"
			case "appended and sealed":
				content += "more"
			}
			if what == "deleted with a fork" {
				r.holds("f", content[:40], 0)
			} else {
				r.must(r.EvictStream(bg, r.record("a").ID))
				r.holds("a", content, r.record("a").Earliest)
			}
			r.wait(10 * grace)
			r.wait(10 * keepHistory)
			if what == "forked" || what == "deleted with a fork" {
				r.holds("f", content[:40], 0)
			}
		})
	}
}

// A run with a lost object cannot be merged. That holds up neither other merges, nor
// the stream's own seals.
func TestLostObjectDoesNotStopOtherMerges(t *testing.T) {
	r := newRig(t, setup{policy: slow})
	contents := map[string]string{}
	for i := range 4 {
		contents[fmt.Sprint(i)] = r.slowStream(fmt.Sprint(i), 8)
	}
	id := r.record("2").ID
	r.must(r.EvictStream(bg, id))
	v := r.hot.View()
	ref, err := v.Segment(id, 35)
	v.Close()
	r.must(err)
	r.must(r.blobs.Delete(bg, ref.Object))
	r.wait(time.Minute)
	for i := range 4 {
		want := 1
		if i == 2 {
			want = 8
		}
		r.segments(fmt.Sprint(i), want)
	}
	r.append("2", "more")
	r.must(r.SealStream(bg, id))
	r.segments("2", 9)
	p, err := r.store.Read(bg, named("2"), stream.At(r.record("2").Offset(35)))
	r.is(err, stream.ErrColdUnavailable, "read of the lost object")
	p.Release()
	r.wait(time.Minute)
	r.segments("2", 9) // it still has what it had
}

func TestOutageStopsMerging(t *testing.T) {
	r := newRig(t, setup{policy: slow})
	content := r.slowStream("a", 8)
	r.must(r.EvictStream(bg, r.record("a").ID))
	r.clock.Add(time.Minute.Milliseconds())
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Times: fault.Always})
	_, err := r.Pass(bg)
	r.is(err, stream.ErrColdUnavailable, "pass in an outage")
	r.segments("a", 8)
	r.faults.Clear()
	r.pass()
	r.segments("a", 1)
	r.holds("a", content, 0)
}
