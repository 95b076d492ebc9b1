package compactor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/hot"
)

// small is a policy under which 24 bytes are small and due after a minute.
var small = compactor.Policy{Target: 100, MaxAge: time.Minute}

// few creates n streams of size bytes each and returns their incarnations.
func (r *rig) few(n, size int) []stream.ID {
	r.t.Helper()
	ids := make([]stream.ID, n)
	for i := range ids {
		ids[i] = r.create(fmt.Sprint(i), letters(size + i)[i:])
	}
	return ids
}

// fewHold fails the test unless the streams of few read as they should, from cold.
func (r *rig) fewHold(n, size int) {
	r.t.Helper()
	for i := range n {
		r.must(r.EvictStream(bg, r.record(fmt.Sprint(i)).ID))
		r.marks(fmt.Sprint(i), uint64(size), uint64(size), uint64(size))
		r.holds(fmt.Sprint(i), letters(size + i)[i:], 0)
	}
}

// packs lists the keys of packs.
func (r *rig) packs() []string {
	r.t.Helper()
	return slices.DeleteFunc(r.objects(".zst"), func(k string) bool { return !strings.Contains(k, "/packs/") })
}

func TestSmallStreamsShareObjects(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.few(40, 20)
	r.wait(time.Minute - time.Millisecond)
	r.count(0, "before their time")
	r.wait(time.Millisecond)
	// Five streams make a target of 100.
	if n := len(r.packs()); n != 8 || len(r.objects(".zst")) != n {
		t.Errorf("objects are %q, want 8 packs", r.objects(".zst"))
	}
	if n := r.faults.Calls(fault.Put); n != 8 {
		t.Errorf("%d puts, want 8", n)
	}
	r.fewHold(40, 20)
	r.wait(10 * grace)
	r.fewHold(40, 20)
}

func TestPacksAreOfOneBucketAndMode(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.must(r.store.CreateBucket(bg, "other"))
	for _, bucket := range []string{stream.DefaultBucket, "other"} {
		for i := range 4 {
			req := tier.CreateRequest{Name: stream.Name{Bucket: bucket, ID: fmt.Sprint(i)}, Body: []byte("12345")}
			if i%2 == 1 {
				req.ContentType = "application/json"
			}
			_, _, err := r.store.Create(bg, req)
			r.must(err)
		}
	}
	r.create("alone", letters(25)) // not small
	r.wait(time.Minute)
	var got []string
	for _, k := range r.objects(".zst") {
		_, k, _ = strings.Cut(k, "/")
		if dir, name, ok := strings.Cut(k, "/packs/"); ok {
			_, ending, _ := strings.Cut(name, ".")
			got = append(got, dir+" "+ending)
			continue
		}
		got = append(got, k[:strings.LastIndexByte(k, '/')])
	}
	want := []string{
		"bucket=default bin.zst", "bucket=default ndjson.zst", "bucket=default/stream=alone", "bucket=other bin.zst", "bucket=other ndjson.zst",
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("objects are %q, want %q", got, want)
	}
}

func TestOneSmallStreamHasAnOrdinarySegment(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.create("a", "alone")
	r.wait(time.Minute)
	if keys := r.objects(".zst"); len(keys) != 1 || len(r.packs()) != 0 || !strings.Contains(keys[0], "/stream=a/") {
		t.Errorf("objects are %q", keys)
	}
}

// The time of small streams comes one by one, but they are sealed together.
func TestYoungerOnesGoAlong(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1000, MaxAge: time.Minute}})
	for i := range 120 { // one a second
		r.create(fmt.Sprint(i), "12345")
		r.wait(time.Second)
	}
	// The first one is due after 60 s and takes those of 30 s along; the next one that
	// is left, 31 s later.
	if n := len(r.packs()); n != 2 {
		t.Errorf("%d packs, want 2: after 60 and 91 seconds", n)
	}
	for i := range 120 {
		if sealed := r.record(fmt.Sprint(i)).Sealed; (sealed == 5) != (i <= 61) {
			t.Errorf("stream %d is sealed up to %d", i, sealed)
		}
	}
}

func TestRivalsPackTheSameStreams(t *testing.T) {
	for _, order := range []string{"aaabbb", "ababab", "aabbba", "abbbaa", "abbaba"} {
		t.Run(order, func(t *testing.T) {
			r := newRig(t, setup{policy: small})
			ids := r.few(5, 20)
			// Each has streams of its own, too.
			packs := map[rune]*compactor.Sealing{}
			for who, list := range map[rune][]stream.ID{'a': ids[:4], 'b': ids[1:]} {
				s, err := r.another().Build(list...)
				r.must(err)
				packs[who] = s
			}
			taken := map[rune]int{}
			for _, who := range order {
				n := taken[who]
				taken[who]++
				r.must(steps[n].do(r, packs[who]))
			}
			r.count(2, "at first")
			r.wait(10 * grace)
			r.fewHold(5, 20)
		})
	}
}

func TestRivalThatComesTooLateAbandons(t *testing.T) {
	r := newRig(t, setup{policy: small})
	ids := r.few(3, 20)
	a, err := r.Build(ids...)
	r.must(err)
	b, err := r.another().Build(ids...)
	r.must(err)
	for _, step := range steps[:3] {
		r.must(step.do(r, a))
	}
	r.must(b.Intend(bg))
	r.must(b.Upload(bg))
	r.is(b.Commit(bg), hot.ErrConflict, "commit of the second")
	r.must(b.Abandon(bg))
	r.wait(grace - time.Millisecond)
	r.count(2, "before the grace is over")
	r.wait(time.Millisecond)
	r.count(1, "after the grace")
	r.fewHold(3, 20)
}

func TestPackPassesOverStreamsThatChange(t *testing.T) {
	r := newRig(t, setup{policy: small})
	ids := r.few(4, 20)
	s, err := r.Build(ids...)
	r.must(err)
	r.must(s.Intend(bg))
	r.must(s.Upload(bg))
	r.must(r.store.Delete(bg, named("1")))
	r.create("1", "the successor's bytes")
	r.publish("2", 10)
	r.append("3", "more")
	r.must(s.Commit(bg))
	r.marks("0", 0, 20, 20)
	r.marks("1", 0, 0, 21)
	r.marks("2", 10, 10, 20)
	r.marks("3", 0, 20, 24)
	r.holds("1", "the successor's bytes", 0)
	r.wait(10 * grace)
	r.must(r.EvictStream(bg, ids[3]))
	r.holds("3", letters(23)[3:]+"more", 0)
}

func TestCrashBetweenAnyTwoStepsOfAPack(t *testing.T) {
	for n := range 4 {
		t.Run(fmt.Sprintf("after %d steps", n), func(t *testing.T) {
			r := newRig(t, setup{policy: small})
			ids := r.few(5, 20)
			s, err := r.Build(ids...)
			r.must(err)
			for _, step := range steps[:n] {
				r.must(step.do(r, s))
			}
			r.crash()
			r.wait(time.Minute)
			lost := 0
			if n == 2 { // the upload without its commit
				lost = 1
			}
			r.count(1+lost, "after the crash")
			r.wait(2 * grace)
			r.wait(grace)
			r.count(1, "after the grace")
			r.fewHold(5, 20)
		})
	}
}

// A pack stays as long as one stream needs it.
func TestPackGoesWithItsLastStream(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.few(2, 20)
	r.wait(time.Minute)
	r.count(1, "at first")
	for i := range 2 {
		r.wait(2 * grace)
		r.count(1, "while a stream needs it")
		r.holds("1", letters(21)[1:], 0)
		r.must(r.store.Delete(bg, named(fmt.Sprint(i))))
		r.pass()
	}
	r.wait(grace - time.Millisecond)
	r.count(1, "before the grace is over")
	r.wait(time.Millisecond)
	r.count(0, "after the grace")
}

// What one stream of a pack has trimmed is history, and kept as long, also when the
// last stream lets go of the pack before.
func TestPackKeepsHistory(t *testing.T) {
	r := newRig(t, setup{policy: small})
	r.few(2, 20)
	r.wait(time.Minute)
	r.publish("0", 20)
	r.pass()
	r.must(r.store.Delete(bg, named("1")))
	r.pass()
	r.wait(keepHistory - time.Millisecond)
	r.count(1, "while history is kept")
	r.wait(time.Millisecond)
	r.count(0, "after it")
}
