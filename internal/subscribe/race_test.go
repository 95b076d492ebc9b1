package subscribe_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"firn/internal/subscribe"
)

// What a receiver says by a callback outranks what becomes of the request: its wake is
// not taken from it because the connection broke.
func TestCallbackOutranksTheAnswer(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, "")
	answer := v.hold(http.StatusInternalServerError, "")
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	d := v.next()
	_, err := r.Callback(bg, subscribe.Flat, "one", d.CallbackToken, subscribe.AckRequest{WakeRequest: d.ack(false).WakeRequest})
	r.must(err)
	answer()
	v.none("while the receiver has the lease")
	if i := r.info("one"); i.Status != "active" {
		t.Errorf("status is %s", i.Status)
	}
	r.advance(29 * time.Second)
	if next, err := r.Callback(bg, subscribe.Flat, "one", d.CallbackToken, d.ack(true)); err != nil || next {
		t.Errorf("done: %v, %v", next, err)
	}
	v.none("after done")
}

// A claim lists nothing that the worker before has acked.
func TestClaimIsOfNow(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.put("a", "")
	r.put("b", "")
	r.pull("one", "wakes", "", "a", "b")
	for range 200 {
		r.post("a", "1")
		r.post("b", "1")
		first := r.claim("one")
		var wg sync.WaitGroup
		wg.Go(func() {
			ack := ackOf(first.WakeID, first.Generation, first.Streams[:1], true)
			if _, err := r.Ack(bg, subscribe.Flat, "one", first.Token, ack); err != nil {
				t.Error(err)
			}
		})
		var second subscribe.Claimed
		for err := error(new(subscribe.HeldError)); errors.As(err, new(*subscribe.HeldError)); {
			second, err = r.Claim(bg, subscribe.Flat, "one", "other")
		}
		wg.Wait()
		if got := paths(second.Streams); got != "explicit b;" {
			t.Fatalf("second claim lists %s", got)
		}
		if _, err := r.Ack(bg, subscribe.Flat, "one", second.Token, ackOf(second.WakeID, second.Generation, second.Streams, true)); err != nil {
			t.Fatal(err)
		}
	}
}

// Streams that grow while they are being linked are not forgotten.
func TestGrowthWhileLinking(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, done)
	r.put("first", "")
	r.hook("one", v.URL, "", "first")
	var list []string
	for i := range 300 {
		list = append(list, fmt.Sprint("s", i))
		r.put(list[i], "")
	}
	for range 3 {
		linked := make(chan struct{})
		go func() {
			defer close(linked)
			if err := r.AddStreams(bg, subscribe.Flat, "one", list); err != nil {
				t.Error(err)
			}
		}()
		before := make(map[string]bool) // those that grew while they were being linked
		for i, more := 0, true; more; i++ {
			path := list[i%len(list)]
			r.post(path, "1")
			before[path] = true
			select {
			case <-linked:
				more = false
			default:
			}
		}
		r.settle()
		r.until("all is acked", func() bool {
			for _, l := range r.info("one").Streams {
				if l.AckedOffset != r.tail(l.Path) {
					return false
				}
			}
			return true
		})
		for _, path := range list {
			r.must(r.RemoveStream(bg, subscribe.Flat, "one", path))
		}
	}
}

// A stale ack is told that it is stale, whatever else is wrong with it.
func TestStaleAckIsFencedFirst(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.put("a", "1")
	r.pull("one", "wakes", "", "a", "b")
	r.put("b", "1")
	c := r.claim("one")
	bad := ackOf(c.WakeID, c.Generation, c.Streams, true)
	bad.Acks = append(bad.Acks, subscribe.StreamAck{Stream: "elsewhere", Offset: "-1"})
	_, err := r.Ack(bg, subscribe.Flat, "one", c.Token, bad)
	r.is(err, subscribe.ErrInvalid, "a bad ack under the lease")
	r.must(r.Release(bg, subscribe.Flat, "one", c.Token, bad.WakeRequest))
	_, err = r.Ack(bg, subscribe.Flat, "one", c.Token, bad)
	r.is(err, subscribe.ErrFenced, "a bad ack after the release")
}

// With its wake stream, the event of a wake that nobody has claimed is gone. When the
// stream is made again, it gets another.
func TestEventIsNotLostWithItsStream(t *testing.T) {
	for name, restart := range map[string]func(r *rig){
		"at once": func(*rig) {},
		"over a restart": func(r *rig) {
			r.stop()
			r.hot.OnGrowth(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.put("wakes", "")
			r.pull("one", "wakes", "e/*")
			r.put("e/a", "1")
			r.settle()
			restart(r)
			r.must(r.hot.Delete(bg, r.record("wakes").ID))
			r.put("wakes", "")
			if name != "at once" {
				r.crash()
			}
			r.settle()
			got := r.events("wakes")
			if len(got) == 0 { // it was looked at before there was another stream
				r.advance(2 * time.Second)
				r.settle()
				got = r.events("wakes")
			}
			if len(got) != 1 || got[0].Generation != 2 {
				t.Fatalf("events %+v", got)
			}
			r.crash()
			r.settle()
			if got := r.events("wakes"); len(got) != 1 {
				t.Errorf("events after another start %+v", got)
			}
			// One that is claimed needs no event.
			c := r.claim("one")
			r.must(r.hot.Delete(bg, r.record("wakes").ID))
			r.put("wakes", "")
			r.settle()
			if _, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true)); err != nil {
				t.Error(err)
			}
			if got := r.events("wakes"); len(got) != 0 {
				t.Errorf("events %+v", got)
			}
		})
	}
}

// A clock that is set back ends leases and delays that only the clock before could mean.
func TestClockThatIsSetBack(t *testing.T) {
	r := newRig(t)
	v := r.receiver(503, "")
	r.put("wakes", "")
	r.pull("pull", "wakes", "*")
	r.hook("hook", v.URL, "*")
	r.put("a", "1")
	v.next()
	c := r.claim("pull")
	r.settle()
	r.stop()
	r.clock.ms.Add(-365 * 24 * time.Hour.Milliseconds())
	r.crash()
	v.next() // though the retry was planned in a year
	r.settle()
	if got := r.events("wakes"); len(got) != 2 || got[1].Generation != 2 {
		t.Errorf("events %+v", got)
	}
	_, err := r.Ack(bg, subscribe.Flat, "pull", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.is(err, subscribe.ErrFenced, "an ack of a year from now")
}

// Heartbeats move a timer and add none, and deletion takes it away.
func TestTimersAreOnePerSubscription(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	for _, id := range []string{"one", "two"} {
		r.pull(id, "wakes", "*")
	}
	r.put("a", "1")
	r.settle()
	one, two := r.claim("one"), r.claim("two")
	for range 100 {
		r.advance(10 * time.Millisecond)
		_, err := r.Ack(bg, subscribe.Flat, "one", one.Token, ackOf(one.WakeID, one.Generation, nil, false))
		r.must(err)
		r.settle()
		if n := r.Timers(); n > 2 {
			t.Fatalf("%d timers", n)
		}
	}
	_, err := r.Ack(bg, subscribe.Flat, "two", two.Token, ackOf(two.WakeID, two.Generation, nil, false))
	r.is(err, subscribe.ErrFenced, "the other lease, which is over")
	for _, id := range []string{"one", "two"} {
		r.must(r.Delete(bg, subscribe.Flat, id))
	}
	if n := r.Timers(); n != 0 {
		t.Errorf("%d timers of no subscription", n)
	}
}

// A host is remembered while something is sent to it, not while it waits or after.
func TestHostsAreForgotten(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Requests, o.RequestsPerHost = 1, 1 })
	v := r.receiver(200, done)
	answer := v.hold(200, done)
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	v.next()
	r.hanging = 1
	for i := range 20 {
		r.hook(fmt.Sprint("s", i), fmt.Sprintf("http://127.0.0.1:%d/", i+1), "b")
	}
	r.put("b", "1")
	r.settle()
	if n := r.Hosts(); n != 1 {
		t.Errorf("%d hosts while one request is under way", n)
	}
	for i := range 20 {
		r.must(r.Delete(bg, subscribe.Flat, fmt.Sprint("s", i)))
	}
	answer()
	r.hanging = 0
	r.settle()
	if n := r.Hosts(); n != 0 {
		t.Errorf("%d hosts at the end", n)
	}
}

// One host has one lane, however its name is spelt.
func TestSpellingsOfAHostShareItsLane(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Requests, o.RequestsPerHost = 4, 1 })
	v := r.receiver(200, done)
	answer := v.hold(200, done)
	port := v.Listener.Addr().String()[len("127.0.0.1"):]
	for i, host := range []string{"localhost", "LOCALHOST"} {
		r.hook(fmt.Sprint(i), "http://"+host+port+"/", "*")
	}
	r.put("a", "1")
	v.next()
	r.hanging = 1
	v.none("while one is under way")
	answer()
	r.hanging = 0
	v.next()
}

// Names that the pattern matches leave nothing behind when they are linked explicitly
// and let go without ever having been streams.
func TestLinksToNothingAreForgotten(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.pull("one", "wakes", "e/*")
	r.must(r.AddStreams(bg, subscribe.Flat, "one", []string{"e/absent"}))
	r.must(r.RemoveStream(bg, subscribe.Flat, "one", "e/absent"))
	v := r.hot.View()
	defer v.Close()
	s, err := v.Subscription("default", "one")
	r.must(err)
	l, err := v.Link(s.Number, named("e/absent"))
	if err != nil || l != nil {
		t.Errorf("left: %+v, %v", l, err)
	}
}
