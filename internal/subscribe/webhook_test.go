package subscribe_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/subscribe"
)

const done = `{"done": true}`

func TestWebhookIsSignedAndAcked(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, done)
	i := r.hook("one", v.URL, "events/*")
	if i.Webhook.URL != v.URL || i.Webhook.Signing.Alg != "ed25519" || i.Webhook.Signing.JWKSURL != root+"/__ds/jwks.json" ||
		i.Status != "active" || i.LeaseTTL != 30_000 || i.CreatedAt != "2023-11-14T22:13:20.000Z" || i.WakeStream != nil || *i.Pattern != "events/*" {
		t.Errorf("created %+v", i)
	}
	r.put("events/a", `{"n":1}`)
	d := v.next()
	if d.SubscriptionID != "one" || d.Generation != 1 || !strings.HasPrefix(d.WakeID, "w_") || d.CallbackURL != root+"/__ds/subscriptions/one/callback" {
		t.Errorf("webhook %s", d.raw)
	}
	rec := r.record("events/a")
	want := subscribe.StreamState{
		Path: "events/a", LinkType: "glob", AckedOffset: rec.Offset(0).String(), TailOffset: rec.TailOffset().String(), HasPending: true,
	}
	if len(d.Streams) != 1 || d.Streams[0] != want {
		t.Errorf("streams %+v, want %+v", d.Streams, want)
	}

	m := regexp.MustCompile(`^t=(\d+),kid=(ds_[\w-]+),ed25519=([\w-]+)$`).FindStringSubmatch(d.signature)
	keys := r.JWKS().Keys
	if m == nil || len(keys) != 1 || keys[0].Kid != m[2] || keys[0].Kid != i.Webhook.Signing.Kid {
		t.Fatalf("signature %q with keys %+v", d.signature, keys)
	}
	if at, _ := strconv.ParseInt(m[1], 10, 64); at != r.clock.now().Unix() {
		t.Errorf("signed at %d, it is %d", at, r.clock.now().Unix())
	}
	x, _ := base64.RawURLEncoding.DecodeString(keys[0].X)
	sig, _ := base64.RawURLEncoding.DecodeString(m[3])
	if !ed25519.Verify(x, append([]byte(m[1]+"."), d.raw...), sig) {
		t.Error("the signature is not of the body")
	}

	r.until("the snapshot is acked", func() bool { return r.acked("one", "events/a") == rec.TailOffset().String() })
	v.none("after done")
	r.post("events/a", "2")
	if d := v.next(); d.Generation != 2 || d.Streams[0].AckedOffset != want.TailOffset {
		t.Errorf("second wake %s", d.raw)
	}
}

// What comes while a wake is processed is not acked with it, and woken for after it.
func TestEventsAfterTheSnapshotWakeAgain(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, done)
	release := make(chan struct{})
	v.answers(func() (int, string) { <-release; return 200, done })
	r.hook("one", v.URL, "**")
	r.put("a", "1")
	first := v.next()
	r.post("a", "2")
	r.put("b", "1")
	r.hanging = 1
	v.none("while one is under way")
	r.hanging = 0
	close(release)
	second := v.next()
	if second.Generation != 2 || second.WakeID == first.WakeID || paths(second.Streams) != "glob a;glob b;" {
		t.Errorf("second wake %s", second.raw)
	}
	if second.Streams[0].AckedOffset != first.Streams[0].TailOffset {
		t.Errorf("first wake acked up to %s, its snapshot ended at %s", second.Streams[0].AckedOffset, first.Streams[0].TailOffset)
	}
	r.until("all is acked", func() bool { return r.acked("one", "a") == r.tail("a") && r.acked("one", "b") == r.tail("b") })
}

func TestCallback(t *testing.T) {
	r := newRig(t)
	v := r.receiver(202, "")
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	d := v.next()
	r.settle()
	callback := func(token string, a subscribe.AckRequest) (bool, error) {
		return r.Callback(bg, subscribe.Flat, "one", token, a)
	}
	// Heartbeats hold the lease beyond its first end.
	for range 3 {
		r.advance(29 * time.Second)
		next, err := callback(d.CallbackToken, subscribe.AckRequest{WakeRequest: d.ack(false).WakeRequest})
		if err != nil || next {
			t.Fatalf("heartbeat: %v, %v", next, err)
		}
	}
	v.none("while the lease is held")
	wrong := d.ack(true)
	wrong.Generation++
	_, err := callback(d.CallbackToken, wrong)
	r.is(err, subscribe.ErrFenced, "another generation")
	wrong = d.ack(true)
	wrong.WakeID = "w_other"
	_, err = callback(d.CallbackToken, wrong)
	r.is(err, subscribe.ErrFenced, "another wake")
	if got := r.acked("one", "a"); got == r.tail("a") {
		t.Error("a fenced callback moved the cursor")
	}

	r.post("a", "2")
	if next, err := callback(d.CallbackToken, d.ack(true)); err != nil || !next {
		t.Errorf("done with more pending: %v, %v", next, err)
	}
	again := v.next()
	r.settle()
	_, err = callback(d.CallbackToken, d.ack(true))
	r.is(err, subscribe.ErrFenced, "the callback of the last wake")
	mixed := again.ack(true)
	_, err = callback(d.CallbackToken, mixed)
	r.is(err, subscribe.ErrFenced, "the last wake's token with this wake's numbers")
	if next, err := callback(again.CallbackToken, mixed); err != nil || next {
		t.Errorf("done: %v, %v", next, err)
	}
	_, err = callback(again.CallbackToken, mixed)
	r.is(err, subscribe.ErrFenced, "a repeated callback")
	_, err = r.Ack(bg, subscribe.Flat, "one", again.CallbackToken, mixed)
	r.is(err, subscribe.ErrInvalid, "an ack of a webhook")
	_, err = r.Claim(bg, subscribe.Flat, "one", "w")
	r.is(err, subscribe.ErrInvalid, "a claim of a webhook")
	v.none("at the end")
}

func TestLeaseOfAWebhookEnds(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, "thanks")
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	first := v.next()
	r.settle()
	r.advance(30*time.Second - time.Millisecond)
	v.none("before the lease ends")
	r.advance(time.Millisecond)
	second := v.next()
	if second.Generation != 2 || second.WakeID == first.WakeID {
		t.Errorf("wake after the lease: %s", second.raw)
	}
	_, err := r.Callback(bg, subscribe.Flat, "one", first.CallbackToken, first.ack(true))
	r.is(err, subscribe.ErrFenced, "a callback after the lease")
	if got, want := r.acked("one", "a"), first.Streams[0].AckedOffset; got != want {
		t.Errorf("cursor is at %s, want %s", got, want)
	}
	if i := r.info("one"); i.Status != "active" {
		t.Errorf("status is %s", i.Status)
	}
}

// Failed attempts are made again after 1, 2, 4 ... 60 s, over restarts too.
func TestRetriesKeepTheirSchedule(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Chance = func() float64 { return 0.5 } })
	v := r.receiver(503, "")
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	generation := uint64(0)
	for i, wait := range []time.Duration{1125, 2250, 4500, 9000, 18000, 36000, 54000, 54000} {
		wait *= time.Millisecond
		if d := v.next(); d.Generation <= generation {
			t.Errorf("attempt %d has generation %d after %d", i, d.Generation, generation)
		} else {
			generation = d.Generation
		}
		r.settle()
		if i := r.info("one"); i.Status != "failed" {
			t.Errorf("status is %s", i.Status)
		}
		if i%3 == 1 {
			r.crash()
		}
		r.advance(wait - time.Millisecond)
		v.none(fmt.Sprintf("1 ms before attempt %d", i+1))
		r.advance(time.Millisecond)
	}
	v.next()
	r.settle()
	v.answer(200, done)
	r.advance(time.Minute)
	d := v.next()
	r.until("it is active", func() bool { return r.info("one").Status == "active" })
	if got := r.acked("one", "a"); got != d.Streams[0].TailOffset {
		t.Errorf("acked up to %s", got)
	}
	r.settle()
	v.answer(500, "")
	r.post("a", "2")
	v.next()
	r.settle()
	r.advance(1125 * time.Millisecond)
	v.next() // a success has begun the schedule anew
}

// A wake whose delivery a crash has cut off is given again at once.
func TestCrashDuringDelivery(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, done)
	hang := make(chan struct{})
	v.answers(func() (int, string) { <-hang; return 200, done })
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	first := v.next()
	v.answer(200, done)
	r.crash()
	close(hang)
	second := v.next()
	if second.Generation != 2 || second.WakeID == first.WakeID {
		t.Errorf("after the crash: %s", second.raw)
	}
	r.until("it is acked", func() bool { return r.acked("one", "a") == r.tail("a") })
}

// A wake that was due but not begun before a crash is begun after it; what was acked is
// not.
func TestCrashBeforeDelivery(t *testing.T) {
	r := newRig(t)
	v := r.receiver(200, done)
	r.put("old", "1")
	r.hook("globs", v.URL, "*")
	r.hook("names", v.URL, "", "b", "absent")
	r.put("a", "1")
	v.next()
	r.until("a is acked", func() bool { return r.acked("globs", "a") == r.tail("a") })
	r.stop() // nothing is delivered any more
	r.put("b", "1")
	r.post("old", "2")
	r.crash()
	// The walk over all streams gives out what it finds as it goes, so one wake or two.
	missing := map[string]bool{"globs b": true, "globs old": true, "names b": true}
	for len(missing) > 0 {
		d := v.next()
		for _, s := range d.Streams {
			if at := d.SubscriptionID + " " + s.Path; !missing[at] {
				t.Errorf("%s was not due, or not again: %s", at, d.raw)
			} else {
				delete(missing, at)
			}
		}
	}
	v.none("when all is acked")
}

func TestDeletedSubscriptionIsFenced(t *testing.T) {
	r := newRig(t)
	v := r.receiver(202, "")
	r.hook("one", v.URL, "*")
	r.put("a", "1")
	d := v.next()
	r.settle()
	r.must(r.Delete(bg, subscribe.Flat, "one"))
	r.must(r.Delete(bg, subscribe.Flat, "one"))
	_, err := r.Callback(bg, subscribe.Flat, "one", d.CallbackToken, d.ack(true))
	r.is(err, subscribe.ErrNotFound, "a callback after deletion")
	r.post("a", "2")
	v.none("after deletion")

	r.hook("one", v.URL, "*")
	_, err = r.Callback(bg, subscribe.Flat, "one", d.CallbackToken, d.ack(true))
	r.is(err, subscribe.ErrToken, "a callback to the successor")
	r.crash()
	v.none("after a restart")
	r.post("a", "3")
	if d := v.next(); d.Generation != 1 {
		t.Errorf("the successor begins with generation %d", d.Generation)
	}
}

// A receiver that does not answer holds up its own webhooks and no others.
func TestSlowReceiverHoldsUpNobodyElse(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Requests, o.RequestsPerHost = 4, 2 })
	slow, quick := r.receiver(200, done), r.receiver(200, done)
	hang := make(chan struct{})
	release := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(release)
	slow.answers(func() (int, string) { <-hang; return 200, done })
	for i := range 6 {
		r.hook(fmt.Sprintf("slow-%d", i), slow.URL, "*")
	}
	r.hook("quick", quick.URL, "*")
	r.put("a", "1")
	quick.next()
	slow.next()
	slow.next()
	r.hanging = 2
	slow.none("beyond the limit of a host")
	r.hanging = 0
	r.until("quick is acked", func() bool { return r.acked("quick", "a") == r.tail("a") })
	release()
	for range 4 {
		slow.next()
	}
	r.until("all are acked", func() bool {
		for i := range 6 {
			if r.acked(fmt.Sprintf("slow-%d", i), "a") != r.tail("a") {
				return false
			}
		}
		return true
	})
	slow.none("at the end")
}

// Requests to different hosts share one limit, too.
func TestRequestsAreBounded(t *testing.T) {
	r := newRig(t, func(o *subscribe.Options) { o.Requests, o.RequestsPerHost = 2, 2 })
	hang := make(chan struct{})
	var receivers []*receiver
	for i := range 5 {
		v := r.receiver(200, done)
		v.answers(func() (int, string) { <-hang; return 200, done })
		r.hook(fmt.Sprint(i), v.URL, "*")
		receivers = append(receivers, v)
	}
	r.put("a", "1")
	got := func() (n int) {
		for _, v := range receivers {
			n += len(v.got)
		}
		return n
	}
	r.until("two requests", func() bool { return got() == 2 })
	r.hanging = 2
	r.settle()
	if n := got(); n != 2 {
		t.Errorf("%d requests under way, want 2", n)
	}
	close(hang)
	r.until("all requests", func() bool { return got() == 5 })
}

func TestRedirectsAndOddAnswersFail(t *testing.T) {
	r := newRig(t)
	for _, status := range []int{301, 307, 400, 404, 410, 500} {
		v := r.receiver(status, done)
		id := fmt.Sprint(status)
		r.hook(id, v.URL, "*")
		r.put("s"+id, "1")
		v.next()
		r.until(id+" has failed", func() bool { return r.info(id).Status == "failed" })
		r.must(r.Delete(bg, subscribe.Flat, id))
	}
	for name, body := range map[string]string{
		"not JSON": "ok", "not done": `{"done":false}`, "a string": `{"done":"true"}`, "more than is read": done + strings.Repeat(" ", 64<<10) + "x",
	} {
		v := r.receiver(200, body)
		r.hook(name, v.URL, "*")
		r.put("s"+name, "1")
		d := v.next()
		r.settle()
		if name == "more than is read" {
			continue // the end is not seen; either outcome is the receiver's own
		}
		if got := r.acked(name, "s"+name); got != d.Streams[0].AckedOffset {
			t.Errorf("%s: acked up to %s", name, got)
		}
		r.must(r.Delete(bg, subscribe.Flat, name))
	}
}
