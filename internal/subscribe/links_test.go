package subscribe_test

import (
	"fmt"
	"strings"
	"testing"

	"firn/internal/subscribe"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// links is what a subscription shows of its streams.
func (r *rig) links(id string) string {
	r.t.Helper()
	var b strings.Builder
	for _, l := range r.info(id).Streams {
		fmt.Fprintf(&b, "%s %s;", l.LinkType, l.Path)
	}
	return b.String()
}

// Streams that exist are linked at their tails, later ones at their beginning.
func TestBackfill(t *testing.T) {
	r := newRig(t)
	r.put("events/old", "1")
	r.put("events/empty", "")
	r.put("other", "1")
	r.put("wakes", "")
	r.pull("one", "wakes", "events/*", "explicit", "absent")
	if got := r.links("one"); got != "explicit absent;glob events/empty;glob events/old;explicit explicit;" {
		t.Errorf("links %s", got)
	}
	if got := r.acked("one", "events/old"); got != r.tail("events/old") {
		t.Errorf("old is linked at %s, its tail is %s", got, r.tail("events/old"))
	}
	_, err := r.Claim(bg, subscribe.Flat, "one", "w")
	r.is(err, subscribe.ErrNoWork, "a claim after backfill")
	tail := r.tail("events/old")
	r.post("events/old", "2")
	r.post("events/empty", "1")
	r.put("events/new", "1")
	r.put("absent", "1")
	c := r.claim("one")
	if got := paths(c.Streams); got != "explicit absent;glob events/empty;glob events/new;glob events/old;" {
		t.Errorf("pending %s", got)
	}
	if got := c.Streams[3].AckedOffset; got != tail {
		t.Errorf("old is pending from %s, want %s", got, tail)
	}
	if got, want := c.Streams[2].AckedOffset, r.record("events/new").Offset(0).String(); got != want {
		t.Errorf("new is pending from %s, want %s", got, want)
	}
}

func TestExplicitLinks(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.put("a", "1")
	r.put("g/x", "1")
	r.pull("one", "wakes", "g/*")
	add := func(paths ...string) { r.t.Helper(); r.must(r.AddStreams(bg, subscribe.Flat, "one", paths)) }
	remove := func(path string) { r.t.Helper(); r.must(r.RemoveStream(bg, subscribe.Flat, "one", path)) }
	r.post("g/x", "2") // pending by the pattern
	r.put("g/y", "1")  // and so is this, without a record
	add("a", "/b", "a", "g/x", "g/y")
	if got := r.links("one"); got != "explicit a;explicit b;explicit g/x;explicit g/y;" {
		t.Errorf("links %s", got)
	}
	if got := r.acked("one", "a"); got != r.tail("a") {
		t.Errorf("a is linked at %s", got)
	}
	c := r.claim("one")
	if got := paths(c.Streams); got != "explicit g/x;explicit g/y;" {
		t.Errorf("pending %s", got)
	}
	r.post("a", "2")
	add("a") // keeps the cursor
	remove("g/x")
	remove("b")
	remove("b")
	remove("never")
	if got := r.links("one"); got != "explicit a;glob g/x;explicit g/y;" {
		t.Errorf("links %s", got)
	}
	r.crash()
	if got := r.links("one"); got != "explicit a;glob g/x;explicit g/y;" {
		t.Errorf("links after a restart %s", got)
	}
	next, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	if err != nil || !next {
		t.Errorf("done: %v, %v; a has grown", next, err)
	}
	c = r.claim("one")
	if got := paths(c.Streams); got != "explicit a;" {
		t.Errorf("pending %s", got)
	}
	remove("a")
	if got := r.links("one"); got != "glob g/x;explicit g/y;" {
		t.Errorf("links %s", got)
	}
	// Something unlinked under a claim: acking it is refused, the claim goes on.
	_, err = r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.is(err, subscribe.ErrInvalid, "an ack of what is not linked any more")
	r.is(r.AddStreams(bg, subscribe.Flat, "two", []string{"a"}), subscribe.ErrNotFound, "links of no subscription")
	r.is(r.RemoveStream(bg, subscribe.Flat, "two", "a"), subscribe.ErrNotFound, "links of no subscription")
	r.is(r.AddStreams(bg, subscribe.Flat, "one", nil), subscribe.ErrInvalid, "no streams")
}

// A stream that is deleted and made again is new from its beginning, and names that
// come and go leave nothing behind.
func TestStreamsThatComeAndGo(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	r.put("e/a", "1")
	r.pull("one", "wakes", "e/*")
	ackAll := func() {
		t.Helper()
		c := r.claim("one")
		_, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
		r.must(err)
	}
	cursor := func() bool {
		v := r.hot.View()
		defer v.Close()
		s, err := v.Subscription("default", "one")
		r.must(err)
		l, err := v.Link(s.Number, named("e/a"))
		r.must(err)
		return l != nil
	}
	r.post("e/a", "2")
	ackAll()
	r.must(r.hot.Delete(bg, r.record("e/a").ID))
	r.until("the cursor is forgotten", func() bool { return !cursor() })
	if got := r.links("one"); got != "" {
		t.Errorf("links %s", got)
	}
	r.put("e/a", "3")
	c := r.claim("one")
	if len(c.Streams) != 1 || c.Streams[0].AckedOffset != r.record("e/a").Offset(0).String() {
		t.Errorf("claimed %+v", c.Streams)
	}
	_, err := r.Ack(bg, subscribe.Flat, "one", c.Token, ackOf(c.WakeID, c.Generation, c.Streams, true))
	r.must(err)
	// One that goes while nobody looks is found at the next start.
	r.stop()
	r.hot.OnGrowth(nil)
	r.must(r.hot.Delete(bg, r.record("e/a").ID))
	r.crash()
	r.until("the cursor is forgotten", func() bool { return !cursor() })
}

// What a fork inherits is no news.
func TestForkIsPendingFromItsBase(t *testing.T) {
	r := newRig(t)
	r.put("wakes", "")
	src := r.put("src", "1")
	r.pull("one", "wakes", "e/*")
	fork := hot.Create{Name: named("e/fork"), ContentType: src.ContentType, Mode: src.Mode,
		Fork: &hot.CreateFork{Source: src.ID, From: src.Name, Position: src.Tail}}
	_, err := r.hot.Create(bg, fork)
	r.must(err)
	_, err = r.Claim(bg, subscribe.Flat, "one", "w")
	r.is(err, subscribe.ErrNoWork, "a fork without bytes of its own")
	r.post("e/fork", "2")
	if c := r.claim("one"); len(c.Streams) != 1 || c.Streams[0].AckedOffset != src.TailOffset().String() {
		t.Errorf("claimed %+v", c.Streams)
	}
}

// The two surfaces have ids and paths of their own over the same streams.
func TestScopes(t *testing.T) {
	r := newRig(t)
	r.must(r.hot.CreateBucket(bg, "trial"))
	v := r.receiver(202, "")
	put := func(scope subscribe.Scope, id, pattern string, streams ...string) error {
		_, _, err := r.Put(bg, scope, id, subscribe.Config{
			Type: "webhook", Pattern: pattern, Streams: streams, Webhook: &subscribe.WebhookConfig{URL: v.URL},
		}, root)
		return err
	}
	r.must(put(subscribe.Flat, "one", "*"))
	r.must(put(subscribe.Bucketed, "one", "trial/*"))
	r.must(put(subscribe.Bucketed, "all", "*/*"))
	r.must(put(subscribe.Bucketed, "exact", "", "default/a"))
	for _, path := range []string{"a", "trial/b/c", "Trial/a", "trial/", "trial/streams"} {
		r.is(put(subscribe.Bucketed, "bad", "", path), subscribe.ErrInvalid, "bucketed path "+path)
	}
	for _, path := range []string{"", "/", "a//b", "__ds/x", "a/../b", "a/"} {
		r.is(put(subscribe.Flat, "bad", "", path), subscribe.ErrInvalid, "flat path "+path)
	}
	got := func(n int) map[string]int {
		count := map[string]int{}
		for range n {
			d := v.next()
			count[d.SubscriptionID+" "+paths(d.Streams)]++
		}
		v.none("beyond what is expected")
		return count
	}
	r.put("a", "1")
	if c := got(3); c["one glob a;"] != 1 || c["all glob default/a;"] != 1 || c["exact explicit default/a;"] != 1 {
		t.Errorf("webhooks for default/a: %v", c)
	}
	r.putName(stream.Name{Bucket: "trial", ID: "a"}, "1")
	if c := got(1); c["one glob trial/a;"] != 1 { // "all" has its lease
		t.Errorf("webhooks for trial/a: %v", c)
	}
	r.put("deep/er", "1") // no stream of the bucketed surface
	v.none("for a path that no pattern matches")
	r.must(r.Delete(bg, subscribe.Flat, "one"))
	if _, err := r.Get(bg, subscribe.Bucketed, "one", root); err != nil {
		t.Errorf("deleted on one surface, on the other: %v", err)
	}
}
