package compactor_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"firn/compactor"
	"firn/tier/hot"
)

func TestRivalsSealOneStream(t *testing.T) {
	content := letters(150)
	// Who of a and b takes its next step.
	for _, order := range []string{"aaabbb", "ababab", "aabbba", "abbbaa", "abbaba"} {
		t.Run(order, func(t *testing.T) {
			r := newRig(t, setup{})
			id := r.create("a", content)
			sealings := map[rune]*compactor.Sealing{'a': r.build(r.Compactor, id), 'b': r.build(r.another(), id)}
			taken := map[rune]int{}
			won := 0
			for _, who := range order {
				s, n := sealings[who], taken[who]
				taken[who]++
				err := steps[n].do(r, s)
				if n < 2 {
					r.must(err)
					continue
				}
				if err == nil {
					won++
					continue
				}
				r.is(err, hot.ErrConflict, "%c's commit", who)
				r.must(s.Abandon(bg))
			}
			if won != 1 {
				t.Errorf("%d commits were accepted, want 1", won)
			}
			r.marks("a", 0, 150, 150)
			r.count(2, "at first")
			r.wait(grace - time.Millisecond)
			r.count(2, "before the grace is over")
			r.wait(time.Millisecond)
			r.count(1, "after the grace")
			r.must(r.EvictStream(bg, id))
			r.holds("a", content, 0)
		})
	}
}

func TestRivalsRunAtOnce(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Budget: 1, HardBytes: 1 << 30, Target: 100}})
	var want [8]string
	for i := range want {
		r.create(fmt.Sprint(i), "")
	}
	var rivals sync.WaitGroup
	done := make(chan struct{})
	for range 3 {
		c := r.another()
		rivals.Go(func() {
			for {
				if _, err := c.Pass(bg); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for round := range 40 {
		i := round % len(want)
		body := letters(30 + round)
		r.append(fmt.Sprint(i), body)
		want[i] += body
	}
	close(done)
	rivals.Wait()
	r.wait(2 * grace)
	segments := 0
	for i := range want {
		r.holds(fmt.Sprint(i), want[i], 0)
		segments += int(r.record(fmt.Sprint(i)).Segments)
	}
	r.count(segments, "when all is swept")
}

func TestStreamIsDeletedAndCreatedBetweenBuildAndCommit(t *testing.T) {
	for _, at := range []int{0, 1, 2} { // before which step
		r := newRig(t, setup{})
		id := r.create("a", letters(150))
		s := r.build(r.Compactor, id)
		for n, step := range steps[:3] {
			if n == at {
				r.must(r.store.Delete(bg, named("a")))
				r.create("a", "the successor's bytes")
			}
			err := step.do(r, s)
			if n < 2 {
				r.must(err)
			} else {
				r.is(err, hot.ErrConflict, "commit for the predecessor")
			}
		}
		r.must(s.Abandon(bg))
		r.marks("a", 0, 0, 21)
		r.holds("a", "the successor's bytes", 0)
		r.wait(grace)
		r.count(0, "after the grace")
	}
}

func TestSnapshotIsPublishedBetweenBuildAndCommit(t *testing.T) {
	content := letters(150)
	for _, tt := range []struct {
		at       uint64
		conflict bool
	}{{0, false}, {1, true}, {100, true}, {149, true}, {150, true}} {
		t.Run(fmt.Sprint(tt.at), func(t *testing.T) {
			r := newRig(t, setup{})
			id := r.create("a", content)
			s := r.build(r.Compactor, id)
			r.must(s.Intend(bg))
			r.must(s.Upload(bg))
			r.publish("a", tt.at)
			err := s.Commit(bg)
			if tt.conflict {
				r.is(err, hot.ErrConflict, "commit")
				r.must(s.Abandon(bg))
			} else {
				r.must(err)
			}
			r.holds("a", content, tt.at)
			r.append("a", letters(100))
			r.pass()
			r.must(r.EvictStream(bg, id))
			r.holds("a", content+letters(100), tt.at)
		})
	}
}

func TestBuildHasNothingToDo(t *testing.T) {
	r := newRig(t, setup{})
	id := r.create("a", "")
	if s, err := r.Build(id); s != nil || err != nil {
		t.Errorf("empty stream: %v, %v", s, err)
	}
	r.append("a", "1")
	r.must(r.SealStream(bg, id))
	if s, err := r.Build(id); s != nil || err != nil {
		t.Errorf("sealed stream: %v, %v", s, err)
	}
	r.must(r.store.Delete(bg, named("a")))
	if s, err := r.Build(id); s != nil || err != nil {
		t.Errorf("deleted stream: %v, %v", s, err)
	}
}
