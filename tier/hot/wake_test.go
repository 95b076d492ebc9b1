package hot_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// pulled is a pull-wake subscription with a wake in flight, whose event is in the
// stream "wakes".
func pulled(t *testing.T, s *hot.Store) (woken *hot.Subscription, wakes *hot.Record) {
	t.Helper()
	c, err := s.Create(ctx, hot.Create{Name: named("wakes"), ContentType: "application/json", Mode: stream.JSON})
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.PutSubscription(ctx, hot.PutSubscription{Subscription: hot.Subscription{
		Scope: "default", ID: "pull", Pull: true, WakeStream: c.Record.Name, Pattern: "**", LeaseTTL: 1000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	woken, err = s.Wake(ctx, hot.Wake{Of: p.Subscription.Ref(), WakeID: "w1", Stream: c.Record.ID, Event: []byte("{}\n")})
	if err != nil {
		t.Fatal(err)
	}
	return woken, c.Record
}

// A failure to wake that comes late takes nothing from a worker who has the wake.
func TestFailureTakesNoWakeFromItsHolder(t *testing.T) {
	clock := newClock()
	s := openWith(t, hot.Options{FS: vfs.NewMem(), Now: clock.Now})
	defer s.Close()
	woken, _ := pulled(t, s)
	hook := subscribe(t, s, "hook")
	fail := func(of hot.SubscriptionRef, wake string) error {
		_, err := s.Attempted(ctx, hot.Attempted{Of: of, Generation: 1, WakeID: wake, NextAttempt: 99})
		return err
	}
	wants(t, fail(woken.Ref(), "w1"), hot.ErrFenced, "a failure of a pull-wake whose event was written")
	if _, err := s.Claim(ctx, hot.Claim{Of: woken.Ref(), WakeID: "x", Worker: "a"}); err != nil {
		t.Fatal(err)
	}
	wants(t, fail(woken.Ref(), "w1"), hot.ErrFenced, "a failure of a wake that is claimed")
	if _, err := s.Wake(ctx, hot.Wake{Of: hook.Ref(), WakeID: "w2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ack(ctx, hot.Ack{Of: hook.Ref(), Generation: 1, WakeID: "w2"}); err != nil {
		t.Fatal(err)
	}
	wants(t, fail(hook.Ref(), "w2"), hot.ErrFenced, "a failure of a webhook whose receiver has called back")
	clock.advance(time.Second)
	for of, wake := range map[hot.SubscriptionRef]string{woken.Ref(): "w1", hook.Ref(): "w2"} {
		wants(t, fail(of, wake), nil, "a failure when the lease is over")
	}
}

// A lease that was given while the clock was ahead ends when the clock is set back.
func TestLeaseOfAClockThatWasAhead(t *testing.T) {
	for back, over := range map[time.Duration]bool{time.Minute: false, time.Minute + time.Millisecond: true, 8760 * time.Hour: true} {
		clock := newClock()
		clock.advance(8761 * time.Hour)
		fs := vfs.NewMem()
		s := openWith(t, hot.Options{FS: fs, Now: clock.Now})
		woken, _ := pulled(t, s)
		if _, err := s.Claim(ctx, hot.Claim{Of: woken.Ref(), WakeID: "x", Worker: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		clock.advance(-back)
		s = openWith(t, hot.Options{FS: fs, Now: clock.Now})
		_, ack := s.Ack(ctx, hot.Ack{Of: woken.Ref(), Generation: 1, WakeID: "w1"})
		_, claim := s.Claim(ctx, hot.Claim{Of: woken.Ref(), WakeID: "w2", Worker: "b"})
		if over {
			wants(t, ack, hot.ErrFenced, "an ack under such a lease")
			wants(t, claim, nil, "a claim after it")
		} else {
			wants(t, ack, nil, "an ack "+back.String()+" back")
			wants(t, claim, hot.ErrHeld, "a claim "+back.String()+" back")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Once the stream with its event is gone, a pull-wake that nobody has claimed gives way
// to another.
func TestPullWakeWhoseStreamIsGone(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	woken, wakes := pulled(t, s)
	wake := func(target stream.ID, generation uint64, id string) error {
		_, err := s.Wake(ctx, hot.Wake{Of: woken.Ref(), Generation: generation, WakeID: id, Stream: target, Event: []byte("{}\n")})
		return err
	}
	again := func() stream.ID {
		t.Helper()
		if err := s.Delete(ctx, wakes.ID); err != nil {
			t.Fatal(err)
		}
		c, err := s.Create(ctx, hot.Create{Name: wakes.Name, ContentType: wakes.ContentType, Mode: wakes.Mode})
		if err != nil {
			t.Fatal(err)
		}
		wakes = c.Record
		return c.Record.ID
	}
	wants(t, wake(wakes.ID, 1, "w2"), hot.ErrConflict, "a second wake while the event is there")
	wants(t, wake(again(), 1, "w2"), nil, "a second wake when it is gone")
	wants(t, wake(wakes.ID, 2, "w3"), hot.ErrConflict, "a third one while the event is there")
	if _, err := s.Claim(ctx, hot.Claim{Of: woken.Ref(), WakeID: "x", Worker: "a"}); err != nil {
		t.Fatal(err)
	}
	wants(t, wake(again(), 2, "w3"), hot.ErrConflict, "a third one while the second is claimed")
}

// An ack that comes after its stream has gone leaves nothing behind, and takes nothing
// from a successor of the name.
func TestAckOfAStreamThatIsGone(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	first := create(t, s, "a")
	appendTo(t, s, first.ID, "hello")
	sub := subscribe(t, s, "one")
	if _, err := s.Wake(ctx, hot.Wake{Of: sub.Ref(), WakeID: "w"}); err != nil {
		t.Fatal(err)
	}
	ack := func(rec *hot.Record, pos uint64) {
		t.Helper()
		_, err := s.Ack(ctx, hot.Ack{Of: sub.Ref(), Generation: 1, WakeID: "w", Acks: []hot.CursorAck{
			{Name: rec.Name, Cursor: hot.CursorAt(rec, pos), Matched: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	ack(first, 5)
	if _, ok := cursor(t, s, sub, "a"); ok {
		t.Error("there is a cursor in a stream that is gone")
	}
	second := create(t, s, "a")
	appendTo(t, s, second.ID, "hi")
	ack(second, 2)
	ack(first, 5)
	if pos, _ := cursor(t, s, sub, "a"); pos != 2 {
		t.Errorf("the cursor in the successor is at %d, want 2", pos)
	}
}

// Links to streams that do not exist are not kept for a pattern.
func TestDroppedLinkToNothing(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "gone")
	sub := subscribe(t, s, "one")
	for _, l := range []hot.Link{{Name: named("absent")}, {Name: rec.Name, Cursor: hot.CursorAt(rec, 0)}} {
		if err := s.AddLinks(ctx, hot.AddLinks{Of: sub.Ref(), Links: []hot.Link{l}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"absent", "gone"} {
		if err := s.DropLink(ctx, hot.DropLink{Of: sub.Ref(), Name: named(id), Keep: true}); err != nil {
			t.Fatal(err)
		}
		if _, ok := cursor(t, s, sub, id); ok {
			t.Errorf("the link to %s is left", id)
		}
	}
}
