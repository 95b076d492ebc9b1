package subscribe_test

import (
	"testing"
	"time"

	"firn/internal/subscribe"
)

// A lease that ends takes holder and wake away, whether anything is pending or not: its
// token is worth nothing from that moment on, and the next worker gets a wake of his
// own (B§7.3).
func TestEndOfALeaseClearsTheHolder(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.pull("one", "wakes", "events/*")
	r.put("events/a", "1")
	r.settle()
	first := r.claim("one")
	if next, err := r.Ack(bg, subscribe.Flat, "one", first.Token, ackOf(first.WakeID, first.Generation, first.Streams, false)); err != nil || next {
		t.Fatalf("ack: %v, %v", next, err)
	}
	_, err := r.Claim(bg, subscribe.Flat, "one", "other")
	if _, held := err.(*subscribe.HeldError); !held {
		t.Errorf("a claim under the lease: %v", err)
	}
	r.advance(time.Second)
	r.settle()
	if got := r.events("wakes"); len(got) != 1 {
		t.Errorf("nothing is pending, and there are events %+v", got)
	}
	late := ackOf(first.WakeID, first.Generation, nil, false)
	_, err = r.Ack(bg, subscribe.Flat, "one", first.Token, late)
	r.is(err, subscribe.ErrFenced, "a heartbeat after the lease")
	r.is(r.Release(bg, subscribe.Flat, "one", first.Token, late.WakeRequest), subscribe.ErrFenced, "a release after the lease")
	_, err = r.Claim(bg, subscribe.Flat, "one", "other")
	r.is(err, subscribe.ErrNoWork, "a claim with nothing pending")

	r.post("events/a", "2")
	second, err := r.Claim(bg, subscribe.Flat, "one", "other")
	if err != nil || second.Generation <= first.Generation || second.WakeID == first.WakeID {
		t.Fatalf("claimed %+v after %+v, %v", second, first, err)
	}
	_, err = r.Ack(bg, subscribe.Flat, "one", first.Token, ackOf(first.WakeID, first.Generation, second.Streams, true))
	r.is(err, subscribe.ErrFenced, "an ack by the first worker")
	if _, err := r.Ack(bg, subscribe.Flat, "one", second.Token, ackOf(second.WakeID, second.Generation, second.Streams, true)); err != nil {
		t.Errorf("an ack by the second worker: %v", err)
	}
	if got := r.acked("one", "events/a"); got != r.tail("events/a") {
		t.Errorf("acked up to %s", got)
	}
}
