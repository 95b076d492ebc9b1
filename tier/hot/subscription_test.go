package hot_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

var ctx = context.Background()

func named(id string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: id} }

// subscribe makes a webhook subscription with links.
func subscribe(t *testing.T, s *hot.Store, id string, links ...hot.Link) *hot.Subscription {
	t.Helper()
	r, err := s.PutSubscription(ctx, hot.PutSubscription{
		Subscription: hot.Subscription{Scope: "default", ID: id, URL: "https://a.example", Pattern: "*", LeaseTTL: 1000, Hash: "h"},
		Links:        links,
	})
	if err != nil || !r.Created {
		t.Fatalf("create subscription %s: %+v, %v", id, r, err)
	}
	return r.Subscription
}

func wants(t *testing.T, err, want error, what string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// cursor is the position of a link, and whether there is one.
func cursor(t *testing.T, s *hot.Store, sub *hot.Subscription, id string) (uint64, bool) {
	t.Helper()
	v := s.View()
	defer v.Close()
	l, err := v.Link(sub.Number, named(id))
	if err != nil {
		t.Fatal(err)
	}
	if l == nil {
		return 0, false
	}
	return l.Position, true
}

func TestSubscriptionsSurviveReopening(t *testing.T) {
	fs := vfs.NewMem()
	s := open(t, fs)
	rec := create(t, s, "a")
	sub := subscribe(t, s, "one", hot.Link{Name: rec.Name, Cursor: hot.CursorAt(rec, 0), Explicit: true})
	if again, err := s.PutSubscription(ctx, hot.PutSubscription{Subscription: hot.Subscription{Scope: "default", ID: "one"}}); err != nil || again.Created || again.Subscription.Hash != "h" {
		t.Errorf("a second put of the id gave %+v, %v", again, err)
	}
	if err := s.AddSigningKey(ctx, hot.AddSigningKey{Seed: make([]byte, 32)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, fs)
	defer s.Close()
	v := s.View()
	defer v.Close()
	if is, err := v.Subscription("default", "one"); err != nil || *is != *sub {
		t.Errorf("after reopening: %+v, %v, want %+v", is, err, sub)
	}
	if _, err := v.Subscription("", "one"); !errors.Is(err, hot.ErrNoSubscription) {
		t.Errorf("an id is unique within its scope: %v", err)
	}
	if keys, err := v.SigningKeys(); err != nil || len(keys) != 1 || keys[0].RetiredAt != 0 {
		t.Errorf("signing keys are %+v, %v", keys, err)
	}
}

func TestWakesAreFenced(t *testing.T) {
	clock := newClock()
	s := openWith(t, hot.Options{FS: vfs.NewMem(), Now: clock.Now})
	defer s.Close()
	rec := create(t, s, "a")
	appendTo(t, s, rec.ID, "hello")
	sub := subscribe(t, s, "one", hot.Link{Name: rec.Name, Cursor: hot.CursorAt(rec, 0)})
	of := sub.Ref()

	_, err := s.Wake(ctx, hot.Wake{Of: of, Generation: 1, WakeID: "w"})
	wants(t, err, hot.ErrConflict, "a wake that expects another generation")
	_, err = s.Wake(ctx, hot.Wake{Of: hot.SubscriptionRef{Scope: "default", ID: "one", Number: of.Number + 1}, WakeID: "w"})
	wants(t, err, hot.ErrNoSubscription, "a wake of a subscription that had the id before")
	woken, err := s.Wake(ctx, hot.Wake{Of: of, WakeID: "w1"})
	if err != nil || woken.Generation != 1 || woken.LeaseUntil != s.Now()+1000 {
		t.Fatalf("first wake: %+v, %v", woken, err)
	}
	if _, err := s.Attempted(ctx, hot.Attempted{Of: of, Generation: 1, WakeID: "w1"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Wake(ctx, hot.Wake{Of: of, Generation: 1, WakeID: "w2"})
	wants(t, err, hot.ErrConflict, "a wake while one is delivered")

	acks := []hot.CursorAck{{Name: rec.Name, Cursor: hot.CursorAt(rec, 3), Matched: true}}
	for what, c := range map[string]hot.Ack{
		"another wake id":    {Of: of, Generation: 1, WakeID: "w2", Acks: acks},
		"another generation": {Of: of, Generation: 2, WakeID: "w1", Acks: acks},
	} {
		_, err := s.Ack(ctx, c)
		wants(t, err, hot.ErrFenced, "an ack with "+what)
	}
	clock.advance(999 * time.Millisecond)
	if _, err := s.Ack(ctx, hot.Ack{Of: of, Generation: 1, WakeID: "w1", Acks: acks}); err != nil {
		t.Fatalf("an ack in the last millisecond: %v", err)
	}
	if pos, _ := cursor(t, s, sub, "a"); pos != 3 {
		t.Errorf("cursor is at %d after the ack of 3", pos)
	}
	acks[0].Position = 2
	if _, err := s.Ack(ctx, hot.Ack{Of: of, Generation: 1, WakeID: "w1", Acks: acks}); err != nil {
		t.Fatal(err)
	}
	if pos, _ := cursor(t, s, sub, "a"); pos != 3 {
		t.Errorf("a smaller ack moved the cursor back to %d", pos)
	}
	clock.advance(1000 * time.Millisecond)
	acks[0].Position = 5
	_, err = s.Ack(ctx, hot.Ack{Of: of, Generation: 1, WakeID: "w1", Acks: acks})
	wants(t, err, hot.ErrFenced, "an ack at the end of the lease")
	if pos, _ := cursor(t, s, sub, "a"); pos != 3 {
		t.Errorf("a fenced ack moved the cursor to %d", pos)
	}
	if woken, err = s.Wake(ctx, hot.Wake{Of: of, Generation: 1, WakeID: "w3"}); err != nil || woken.Generation != 2 {
		t.Fatalf("a wake after the lease: %+v, %v", woken, err)
	}
	if woken, err = s.Wake(ctx, hot.Wake{Of: of, Generation: 2, WakeID: "w4"}); err != nil || woken.Generation != 3 {
		t.Errorf("a wake after one that was never delivered: %+v, %v", woken, err)
	}
	failed, err := s.Attempted(ctx, hot.Attempted{Of: of, Generation: 3, WakeID: "w4", NextAttempt: 99})
	if err != nil || failed.Woken(s.Now()) || failed.Failures != 1 || failed.NextAttempt != 99 {
		t.Errorf("after a failure: %+v, %v", failed, err)
	}
	if err := s.DropSubscription(ctx, "default", "one"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Ack(ctx, hot.Ack{Of: of, Generation: 3, WakeID: "w4"})
	wants(t, err, hot.ErrNoSubscription, "an ack after deletion")
	if _, ok := cursor(t, s, sub, "a"); ok {
		t.Error("a link outlives its subscription")
	}
}

func TestPullWakesAppendTheirEvent(t *testing.T) {
	clock := newClock()
	s := openWith(t, hot.Options{FS: vfs.NewMem(), Now: clock.Now})
	defer s.Close()
	r, err := s.Create(ctx, hot.Create{Name: named("wakes"), ContentType: "application/json", Mode: stream.JSON})
	if err != nil {
		t.Fatal(err)
	}
	wakes, text := r.Record, create(t, s, "text")
	p, err := s.PutSubscription(ctx, hot.PutSubscription{Subscription: hot.Subscription{
		ID: "pull", Pull: true, WakeStream: wakes.Name, Pattern: "**", LeaseTTL: 1000,
	}})
	if err != nil {
		t.Fatal(err)
	}
	of := p.Subscription.Ref()

	_, err = s.Wake(ctx, hot.Wake{Of: of, WakeID: "w", Stream: text.ID, Event: []byte("{}\n")})
	wants(t, err, stream.ErrContentType, "a wake stream that is not JSON")
	_, err = s.Wake(ctx, hot.Wake{Of: of, WakeID: "w", Stream: 1, Event: []byte("{}\n")})
	wants(t, err, stream.ErrNotFound, "a wake stream that is not there")
	woken, err := s.Wake(ctx, hot.Wake{Of: of, WakeID: "w1", Stream: wakes.ID, Event: []byte("{}\n")})
	if err != nil || woken.Generation != 1 || woken.LeaseUntil != 0 {
		t.Fatalf("wake: %+v, %v", woken, err)
	}
	v := s.View()
	if wakes, err = v.Incarnation(wakes.ID); err != nil || wakes.Tail != 3 {
		t.Errorf("wake stream ends at %d, %v", wakes.Tail, err)
	}
	v.Close()
	clock.advance(1000 * time.Hour)
	_, err = s.Wake(ctx, hot.Wake{Of: of, Generation: 1, WakeID: "w2", Stream: wakes.ID, Event: []byte("{}\n")})
	wants(t, err, hot.ErrConflict, "a second wake before the first is claimed")
	_, err = s.Ack(ctx, hot.Ack{Of: of, Generation: 1, WakeID: "w1"})
	wants(t, err, hot.ErrFenced, "an ack without a claim")

	claimed, err := s.Claim(ctx, hot.Claim{Of: of, WakeID: "other", Worker: "a"})
	if err != nil || claimed.WakeID != "w1" || claimed.Generation != 1 || claimed.Holder != "a" {
		t.Fatalf("claim: %+v, %v", claimed, err)
	}
	held, err := s.Claim(ctx, hot.Claim{Of: of, WakeID: "other", Worker: "b"})
	wants(t, err, hot.ErrHeld, "a claim of what is held")
	if held == nil || held.Holder != "a" {
		t.Errorf("a refused claim tells %+v", held)
	}
	clock.advance(1000 * time.Millisecond)
	claimed, err = s.Claim(ctx, hot.Claim{Of: of, WakeID: "w2", Worker: "b"})
	if err != nil || claimed.WakeID != "w2" || claimed.Generation != 2 || claimed.Holder != "b" {
		t.Errorf("claim after the lease: %+v, %v", claimed, err)
	}
	if done, err := s.Ack(ctx, hot.Ack{Of: of, Generation: 2, WakeID: "w2", Done: true}); err != nil || done.Woken(s.Now()) || done.Holder != "" {
		t.Errorf("after done: %+v, %v", done, err)
	}
}

func TestLinksAreAddedAndTaken(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	sub := subscribe(t, s, "one", hot.Link{Name: rec.Name, Cursor: hot.CursorAt(rec, 0)})
	of := sub.Ref()
	appendTo(t, s, rec.ID, "hello")
	if err := s.AddLinks(ctx, hot.AddLinks{Of: of, Links: []hot.Link{
		{Name: rec.Name, Cursor: hot.CursorAt(rec, 5)}, {Name: named("absent")},
	}}); err != nil {
		t.Fatal(err)
	}
	if pos, ok := cursor(t, s, sub, "a"); !ok || pos != 0 {
		t.Errorf("linking again moved the cursor to %d, %v", pos, ok)
	}
	if err := s.DropLink(ctx, hot.DropLink{Of: of, Name: rec.Name, Keep: true}); err != nil {
		t.Fatal(err)
	}
	if _, ok := cursor(t, s, sub, "a"); !ok {
		t.Error("the pattern's link is gone with the explicit one")
	}
	// What is not explicit is not taken by name.
	if err := s.DropLink(ctx, hot.DropLink{Of: of, Name: rec.Name}); err != nil {
		t.Fatal(err)
	}
	if err := s.SweepLinks(ctx, hot.SweepLinks{Of: of, Names: []stream.Name{rec.Name, named("absent")}}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "absent"} {
		if _, ok := cursor(t, s, sub, id); !ok {
			t.Errorf("link to %s is gone", id)
		}
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.SweepLinks(ctx, hot.SweepLinks{Of: of, Names: []stream.Name{rec.Name}}); err != nil {
		t.Fatal(err)
	}
	if err := s.DropLink(ctx, hot.DropLink{Of: of, Name: named("absent")}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "absent"} {
		if _, ok := cursor(t, s, sub, id); ok {
			t.Errorf("link to %s is left", id)
		}
	}
}

func TestSigningKeysRotate(t *testing.T) {
	clock := newClock()
	s := openWith(t, hot.Options{FS: vfs.NewMem(), Now: clock.Now})
	defer s.Close()
	keys := func() []hot.SigningKey {
		v := s.View()
		defer v.Close()
		k, err := v.SigningKeys()
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seed := make([]byte, 32)
	if err := s.AddSigningKey(ctx, hot.AddSigningKey{Seed: seed}); err != nil {
		t.Fatal(err)
	}
	wants(t, s.AddSigningKey(ctx, hot.AddSigningKey{Seed: seed}), hot.ErrConflict, "a first key beside another")
	clock.advance(10 * time.Millisecond)
	retired := s.Now()
	if err := s.AddSigningKey(ctx, hot.AddSigningKey{Replaces: 1, Seed: seed}); err != nil {
		t.Fatal(err)
	}
	if k := keys(); len(k) != 2 || k[0].RetiredAt != retired || k[1].RetiredAt != 0 || k[1].Number != 2 {
		t.Errorf("keys are %+v", k)
	}
	if err := s.DropSigningKeys(ctx, retired); err != nil {
		t.Fatal(err)
	}
	if k := keys(); len(k) != 2 {
		t.Errorf("a key went too early: %+v", k)
	}
	if err := s.DropSigningKeys(ctx, retired+1); err != nil {
		t.Fatal(err)
	}
	if k := keys(); len(k) != 1 || k[0].Number != 2 {
		t.Errorf("keys are %+v", k)
	}
}

func TestGrowthIsTold(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	var told []string
	s.OnGrowth(func(n stream.Name, gone bool) {
		if gone {
			n.ID = "-" + n.ID
		}
		told = append(told, n.ID)
	})
	rec := create(t, s, "a")
	appendTo(t, s, rec.ID, "hello")
	if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, Close: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(ctx, hot.Create{Name: named("b"), ContentType: "text/plain", Mode: stream.Bytes, Payload: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	s.OnGrowth(nil)
	create(t, s, "c")
	if len(told) != 3 || told[0] != "a" || told[1] != "b" || told[2] != "-a" {
		t.Errorf("told of %q", told)
	}
}
