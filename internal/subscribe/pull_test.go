package subscribe_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"firn/internal/subscribe"
	"firn/pkg/stream"
	"firn/tier/hot"
)

func TestPullWake(t *testing.T) {
	r := newRig(t)
	r.put("wake/pool", "")
	i := r.pull("one", "wake/pool", "events/*")
	if i.Type != "pull-wake" || i.Webhook != nil || *i.WakeStream != "wake/pool" || i.LeaseTTL != 1000 {
		t.Errorf("created %+v", i)
	}
	_, err := r.Claim(bg, subscribe.Flat, "one", "worker")
	r.is(err, subscribe.ErrNoWork, "a claim with nothing pending")
	r.put("events/a", "1")
	r.settle()
	want := wakeEvent{"wake", "one", "events/a", 1, r.clock.ms.Load()}
	if got := r.events("wake/pool"); len(got) != 1 || got[0] != want {
		t.Errorf("events %+v, want %+v", got, want)
	}
	// More of the same makes no further event until the wake is over.
	r.post("events/a", "2")
	r.advance(time.Hour)
	r.settle()
	if got := r.events("wake/pool"); len(got) != 1 {
		t.Errorf("events %+v", got)
	}

	c := r.claim("one")
	if c.Generation != 1 || c.LeaseTTL != 1000 || paths(c.Streams) != "glob events/a;" || c.Streams[0].TailOffset != r.tail("events/a") || !c.Streams[0].HasPending {
		t.Errorf("claimed %+v", c)
	}
	_, err = r.Claim(bg, subscribe.Flat, "one", "other")
	if held := new(subscribe.HeldError); !errors.As(err, &held) || held.Holder != "worker" || held.Generation != 1 {
		t.Errorf("second claim: %v", err)
	}
	ack := func(a subscribe.AckRequest) (bool, error) { return r.Ack(bg, subscribe.Flat, "one", c.Token, a) }
	// Acks without done are heartbeats.
	for range 3 {
		r.advance(999 * time.Millisecond)
		if next, err := ack(ackOf(c.WakeID, c.Generation, c.Streams, false)); err != nil || next {
			t.Fatalf("heartbeat: %v, %v", next, err)
		}
		r.settle()
	}
	if got := r.acked("one", "events/a"); got != r.tail("events/a") {
		t.Errorf("acked up to %s", got)
	}
	if next, err := ack(ackOf(c.WakeID, c.Generation, c.Streams, true)); err != nil || next {
		t.Errorf("done: %v, %v", next, err)
	}
	_, err = ack(ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.is(err, subscribe.ErrFenced, "a repeated ack")
	r.settle()
	if got := r.events("wake/pool"); len(got) != 1 {
		t.Errorf("events after done %+v", got)
	}

	// A claim need not wait for the event.
	r.post("events/a", "3")
	c = r.claim("one")
	_, err = r.Callback(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.is(err, subscribe.ErrInvalid, "a callback of a pull-wake")
	r.settle()
	before := len(r.events("wake/pool"))
	r.must(r.Release(bg, subscribe.Flat, "one", c.Token, subscribe.WakeRequest{WakeID: c.WakeID, Generation: c.Generation}))
	r.is(r.Release(bg, subscribe.Flat, "one", c.Token, subscribe.WakeRequest{WakeID: c.WakeID, Generation: c.Generation}), subscribe.ErrFenced, "a second release")
	r.settle()
	got := r.events("wake/pool")
	if len(got) != before+1 || got[before].Generation != c.Generation+1 {
		t.Errorf("events after release %+v", got)
	}
	if r.acked("one", "events/a") == r.tail("events/a") {
		t.Error("a release has acked")
	}
}

func TestLeaseOfAClaimEnds(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.pull("one", "wakes", "events/*")
	r.put("events/a", "1")
	r.settle()
	c := r.claim("one")
	r.settle()
	r.advance(999 * time.Millisecond)
	r.settle()
	if got := r.events("wakes"); len(got) != 1 {
		t.Errorf("events before the lease ends %+v", got)
	}
	r.advance(time.Millisecond)
	r.settle()
	got := r.events("wakes")
	if len(got) != 2 || got[1].Generation != 2 {
		t.Errorf("events after the lease %+v", got)
	}
	_, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.is(err, subscribe.ErrFenced, "an ack after the lease")
	if c := r.claim("one"); c.Generation != 2 {
		t.Errorf("claimed %+v", c)
	}
}

// A claim that a crash finds is honoured; its lease ends all the same.
func TestCrashUnderALease(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.pull("one", "wakes", "events/*")
	r.put("events/a", "1")
	r.settle()
	c := r.claim("one")
	r.crash()
	r.settle()
	if _, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, nil, false)); err != nil {
		t.Errorf("ack after a restart: %v", err)
	}
	r.settle()
	r.advance(time.Second)
	r.settle()
	if got := r.events("wakes"); len(got) != 2 {
		t.Errorf("events %+v", got)
	}
	// A wake that was written but not claimed is not written again.
	r.crash()
	r.settle()
	if got := r.events("wakes"); len(got) != 2 {
		t.Errorf("events after another crash %+v", got)
	}
	if c := r.claim("one"); c.Generation != 2 || paths(c.Streams) != "glob events/a;" {
		t.Errorf("claimed %+v", c)
	}
}

// Without a stream that takes it, an event waits as a webhook does.
func TestWakeStreamThatDoesNotTakeEvents(t *testing.T) {
	for name, make := range map[string]func(r *rig){
		"absent": func(*rig) {},
		"closed": func(r *rig) {
			_, err := r.hot.Append(bg, &hot.Append{ID: r.put("wakes", "").ID, Close: true})
			r.must(err)
		},
		"of text": func(r *rig) {
			_, err := r.hot.Create(bg, hot.Create{Name: named("wakes"), ContentType: "text/plain", Mode: stream.Bytes})
			r.must(err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			make(r)
			r.pull("one", "wakes", "events/*")
			r.put("events/a", "1")
			r.settle()
			if i := r.info("one"); i.Status != "failed" {
				t.Errorf("status is %s", i.Status)
			}
			if name != "absent" {
				r.must(r.hot.Delete(bg, r.record("wakes").ID))
			}
			r.put("wakes", "")
			r.settle()
			if got := r.events("wakes"); len(got) != 0 {
				t.Errorf("events before the retry %+v", got)
			}
			r.advance(1250 * time.Millisecond)
			r.settle()
			if got := r.events("wakes"); len(got) != 1 || got[0].Generation != 1 {
				t.Errorf("events %+v", got)
			}
			if i := r.info("one"); i.Status != "active" {
				t.Errorf("status is %s", i.Status)
			}
		})
	}
}

// The events of a subscription do not wake it, those of others may.
func TestOwnWakeStreamIsNoNews(t *testing.T) {
	r := newRig(t)
	r.put("w/one", "")
	r.put("w/two", "")
	r.pull("one", "w/one", "**")
	r.put("a", "1")
	r.settle()
	c := r.claim("one")
	if paths(c.Streams) != "glob a;" {
		t.Errorf("claimed %s", paths(c.Streams))
	}
	next, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	if err != nil || next {
		t.Errorf("done: %v, %v", next, err)
	}
	r.settle()
	if got := r.content("w/one"); strings.Count(got, "\n") != 1 {
		t.Errorf("events %s", got)
	}
	lease := uint64(1000)
	_, _, err = r.Put(bg, subscribe.Flat, "loop", subscribe.Config{Type: "pull-wake", Streams: []string{"w/one"}, WakeStream: "w/one", LeaseTTL: &lease}, root)
	r.is(err, subscribe.ErrInvalid, "a subscription to its own wake stream")
	r.is(r.AddStreams(bg, subscribe.Flat, "one", []string{"w/one"}), subscribe.ErrInvalid, "a link to its own wake stream")
}

func TestAcksThatAreRefused(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.pull("one", "wakes", "events/*")
	r.put("events/a", "1")
	r.put("events/b", "1")
	r.put("elsewhere", "1")
	r.settle()
	c := r.claim("one")
	ack := func(path, offset string) error {
		a := ackOf(c.WakeID, c.Generation, nil, false)
		// Of two acks, none counts if one is wrong.
		a.Acks = []subscribe.StreamAck{{Stream: "events/b", Offset: r.tail("events/b")}, {Stream: path, Offset: offset}}
		_, err := r.Ack(bg, subscribe.Flat, "one", c.Token, a)
		return err
	}
	a := r.record("events/a")
	past := a.TailOffset()
	past.Position++
	other := a.TailOffset()
	other.Life++
	r.is(ack("events/a", past.String()), subscribe.ErrOffset, "past the tail")
	r.is(ack("events/a", other.String()), subscribe.ErrOffset, "another life")
	for _, offset := range []string{"", "-1", "now", "1"} {
		r.is(ack("events/a", offset), subscribe.ErrInvalid, "offset "+offset)
	}
	r.is(ack("elsewhere", r.tail("elsewhere")), subscribe.ErrInvalid, "a stream that is not linked")
	r.is(ack("events/../a", past.String()), subscribe.ErrInvalid, "no path")
	if r.acked("one", "events/b") == r.tail("events/b") {
		t.Error("a refused ack moved a cursor")
	}
	r.must(ack("events/a", a.TailOffset().String()))
	r.must(ack("events/a", a.Offset(0).String())) // an earlier ack that comes late
	if got := r.acked("one", "events/a"); got != a.TailOffset().String() {
		t.Errorf("acked up to %s", got)
	}
	r.must(r.hot.Delete(bg, a.ID))
	r.must(ack("events/a", a.TailOffset().String())) // too late, and no fault
}

func TestTokens(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.put("wakes-two", "")
	lease := uint64(subscribe.MaxLease)
	for id, wakes := range map[string]string{"one": "wakes", "two": "wakes-two"} {
		_, _, err := r.Put(bg, subscribe.Flat, id, subscribe.Config{Type: "pull-wake", Pattern: "events/*", WakeStream: wakes, LeaseTTL: &lease}, root)
		r.must(err)
	}
	r.put("events/a", "1")
	r.settle()
	c, other := r.claim("one"), r.claim("two")
	beat := func(token string) error {
		_, err := r.Ack(bg, subscribe.Flat, "one", token, ackOf(c.WakeID, c.Generation, nil, false))
		return err
	}
	r.must(beat(c.Token))
	head, tail, _ := strings.Cut(c.Token, ".")
	body, mac, _ := strings.Cut(tail, ".")
	none := "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0" // {"alg":"none","typ":"JWT"}
	for what, token := range map[string]string{
		"none": "", "another subscription's": other.Token, "cut": c.Token[:len(c.Token)-1], "longer": c.Token + "A",
		"unsigned": none + "." + body + ".", "another header": none + "." + body + "." + mac,
		"another body": head + "." + strings.ToUpper(body) + "." + mac, "garbage": "..", "words": "a.b.c",
	} {
		r.is(beat(token), subscribe.ErrToken, "token "+what)
	}
	// Heartbeats keep a lease, but no token lives longer than a day.
	end := r.clock.ms.Load() + subscribe.TokenLife
	for r.clock.ms.Load() < end-1 {
		r.clock.ms.Store(min(r.clock.ms.Load()+subscribe.MaxLease-1, end-1))
		if err := beat(c.Token); err != nil {
			t.Fatalf("heartbeat: %v", err)
		}
	}
	r.clock.ms.Store(end)
	r.is(beat(c.Token), subscribe.ErrTokenExpired, "a token of yesterday")
}
