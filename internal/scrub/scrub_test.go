package scrub_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/scrub"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/hot"
)

type labelPair = *dto.LabelPair

// damages are what can become of an object, and what that is called. Other is a whole
// object of the same kind.
var damages = map[string]struct {
	is hot.Damage
	do func(object, other []byte) []byte
}{
	"missing":            {hot.Missing, func(_, _ []byte) []byte { return nil }},
	"flipped":            {hot.Corrupt, func(b, _ []byte) []byte { b[len(b)/3] ^= 4; return b }},
	"flipped at its end": {hot.Corrupt, func(b, _ []byte) []byte { b[len(b)-1] ^= 4; return b }},
	"cut by a byte":      {hot.Corrupt, func(b, _ []byte) []byte { return b[:len(b)-1] }},
	"empty":              {hot.Corrupt, func(_, _ []byte) []byte { return []byte{} }},
	"a byte longer":      {hot.Corrupt, func(b, _ []byte) []byte { return append(b, 0) }},
	"swapped":            {hot.Differs, func(_, other []byte) []byte { return other }},
}

// kinds are how objects come about; each makes a stream "a", and evicts it.
var kinds = map[string]func(r *rig) (object, other string){
	"segment": func(r *rig) (string, string) {
		object, other := r.sealed("a"), r.sealed("b")
		r.evict("a", "b")
		return object, other
	},
	"pack": func(r *rig) (string, string) {
		object, other := r.packed("a", "c", "d"), r.packed("b", "e", "f")
		r.evict("a", "b", "c", "d", "e", "f")
		return object, other
	},
	"snapshot": func(r *rig) (string, string) { return r.shot("a"), r.shot("b") },
}

func TestDamageIsFoundAndStays(t *testing.T) {
	for kind, make := range kinds {
		for what, damage := range damages {
			t.Run(kind+" "+what, func(t *testing.T) {
				if kind == "snapshot" && what == "swapped" {
					return // the same bytes
				}
				r := newRig(t, scrub.Options{})
				key, other := make(r)
				r.pass(period)
				r.damaged()
				was := r.bytes(key)
				swapped := r.bytes(other)
				r.put(key, damage.do(bytes.Clone(was), swapped))
				// Objects of another size than the other one are damaged, not different.
				is := damage.is
				if is == hot.Differs && len(swapped) != len(was) {
					is = hot.Corrupt
				}
				r.pass(period)
				r.damaged(key)
				if r.metric("firn_scrub_damaged_objects", "damage", is.String()) != 1 {
					t.Errorf("it is not called %q: %+v", is, r.scrub.Status())
				}
				r.pass(3 * period)
				r.damaged(key)
				r.logged(1, "level=ERROR", "object is damaged", key, "damage="+is.String())
				r.crash(nil)
				r.work()
				r.damaged(key)
				r.pass(period)
				r.logged(1, "level=ERROR")

				r.put(key, was)
				r.scrub.Recheck()
				r.work()
				r.damaged()
				r.logged(1, "whole again", key)
			})
		}
	}
}

// A snapshot of a fork is that of its source, which may have another one by then.
func TestSnapshotOfForkIsChecked(t *testing.T) {
	for what, change := range map[string]func(r *rig){
		"none": func(*rig) {},
		"source has another snapshot": func(r *rig) {
			r.must(r.store.PublishSnapshot(bg, tier.PublishRequest{
				Name: named("a"), Offset: r.record("a").Offset(200), Size: -1, Body: bytes.NewReader([]byte("another")),
			}))
		},
		"source is deleted": func(r *rig) { r.must(r.store.Delete(bg, named("a"))) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, scrub.Options{})
			key := r.shot("a")
			_, _, err := r.store.Create(bg, tier.CreateRequest{Name: named("f"), Fork: &tier.ForkRequest{Source: named("a")}})
			r.must(err)
			_, _, err = r.store.Create(bg, tier.CreateRequest{Name: named("g"), Fork: &tier.ForkRequest{Source: named("f")}})
			r.must(err)
			change(r)
			r.pass(period)
			r.damaged()
			r.put(key, []byte("all of IT"))
			r.pass(period)
			r.damaged(key)
		})
	}
}

func TestBadTransferIsNoDamage(t *testing.T) {
	for times := 1; times <= 3; times++ {
		r := newRig(t, scrub.Options{})
		key := r.sealed("a")
		r.evict("a")
		r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Flip, At: 40, Times: times})
		r.work()
		want, bad := 1.0, 0
		if times == 3 {
			want, bad = 0, 1
		}
		if n := r.metric("firn_scrub_bad_reads_total"); n != want {
			t.Errorf("%d flips: %v bad reads, want %v", times, n, want)
		}
		r.logged(bad, "object is damaged", key)
		r.scrub.Recheck()
		r.work()
		r.damaged()
	}
}

// What readers stumble over is looked at without rounds, and only damage counts.
func TestReadersTell(t *testing.T) {
	r := newRig(t, scrub.Options{Period: -1})
	key := r.sealed("a")
	r.sealed("b")
	r.evict("a", "b")
	r.put(key, nil)
	r.pass(100 * period)
	if n := r.metric("firn_scrub_objects_total"); n != 0 {
		t.Errorf("%v objects were looked at", n)
	}
	for range 5 {
		p, err := r.store.Read(bg, named("a"), stream.Start{})
		p.Release()
		if !errors.Is(err, stream.ErrColdUnavailable) {
			t.Fatalf("read of a missing object: %v", err)
		}
		r.work()
	}
	r.damaged(key)
	r.logged(1, "object is damaged", key, "stream=default/a", "damage=missing")
	if n := r.metric("firn_scrub_objects_total"); n != 1 {
		t.Errorf("%v objects were looked at, want 1", n)
	}

	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Hide, Times: 2})
	p, err := r.store.Read(bg, named("b"), stream.Start{})
	p.Release()
	if err == nil {
		t.Fatal("a hidden object was read")
	}
	r.work()
	r.damaged(key)
	r.must(r.store.Delete(bg, named("a")))
	_, err = r.compactor.Pass(bg)
	r.must(err)
	r.pass(time.Hour)
	r.logged(1, "not needed any more", key)
	r.damaged()
}

func TestOutageIsNoDamage(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for i := range 5 {
		r.sealed(letter(i))
		r.evict(letter(i))
	}
	r.pass(period)
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Times: fault.Always})
	calls := r.faults.Calls(fault.Get)
	r.pass(period)
	// One call an attempt; each object is tried again once an hour at last.
	if n := r.faults.Calls(fault.Get) - calls; n == 0 || n > 5*(10*24+10) {
		t.Errorf("%d calls in an outage of ten days", n)
	}
	r.damaged()
	if n := r.metric("firn_scrub_unanswered_objects"); n != 5 {
		t.Errorf("%v objects are unanswered, want 5", n)
	}
	r.pass(period)
	if s := r.metric("firn_scrub_whole_round_seconds"); s < 2*period.Seconds() {
		t.Errorf("a round is said to be whole %v after an outage began", s)
	}
	r.logged(0, "level=ERROR")
	r.faults.Clear()
	r.pass(period)
	r.pass(period)
	r.damaged()
	if s := r.metric("firn_scrub_whole_round_seconds"); s > 2*period.Seconds() {
		t.Errorf("no round was whole for %v s", s)
	}
	if n := r.metric("firn_scrub_unanswered_objects"); n != 0 {
		t.Errorf("%v objects are unanswered", n)
	}
}

// One object that the store refuses holds up no other, but no round counts.
func TestObjectWithoutAnswerHoldsUpNoOther(t *testing.T) {
	for _, crash := range []bool{false, true} {
		r := newRig(t, scrub.Options{})
		var keys []string
		for i := range 5 {
			keys = append(keys, r.sealed(letter(i)))
			r.evict(letter(i))
		}
		slices.Sort(keys)
		r.pass(period)
		r.faults.Script(fault.Fault{Op: fault.Get, Key: keys[1], Kind: fault.Before, Err: blob.ErrDenied, Times: fault.Always})
		r.put(keys[3], nil)
		r.pass(period * 7 / 10)
		if crash {
			r.crash(nil)
		}
		r.pass(period * 3 / 10)
		r.damaged(keys[3])
		if s := r.metric("firn_scrub_whole_round_seconds"); s < 2*period.Seconds()-1 {
			t.Errorf("a round without an answer is said to be whole, %v s ago (crash: %t)", s, crash)
		}
	}
}

// Whatever happens in the middle, each object is read once a round.
func TestRestartGoesOnWhereItWas(t *testing.T) {
	r := newRig(t, scrub.Options{})
	for i := range 10 {
		r.sealed(letter(i))
		r.evict(letter(i))
	}
	calls := r.faults.Calls(fault.Get)
	for range 10 {
		r.pass(period/10 - time.Second)
		r.crash(nil)
	}
	if n := r.faults.Calls(fault.Get) - calls; n != 10 {
		t.Errorf("%d GETs for ten objects", n)
	}
	r.pass(time.Minute)
	if n := r.faults.Calls(fault.Get) - calls; n != 11 {
		t.Errorf("%d GETs when the next round has begun, want 11", n)
	}
	r.damaged()
}
