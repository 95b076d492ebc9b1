package subscribe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/subscribe"
	"firn/internal/subscribe/webhook"
	"firn/internal/tiertest/disk"
	"firn/pkg/stream"
	"firn/tier/hot"
)

const root = "http://firn.test/v1/stream"

var bg = context.Background()

// rig is an engine over a hot tier in memory, with a clock that stands still. It can
// lose power. At its end the store is checked.
type rig struct {
	*subscribe.Engine
	t       testing.TB
	opts    subscribe.Options
	disk    *disk.Disk
	hot     *hot.Store
	clock   clock
	stop    func()
	hanging int // requests that their receiver does not answer
}

// clock is set by the test. Whoever waits is let go at every look at the test's
// conditions, and finds out for himself what time it is.
type clock struct {
	ms    atomic.Int64
	mu    sync.Mutex
	waits []chan time.Time
	asked time.Duration // the last time
}

func (c *clock) now() time.Time { return time.UnixMilli(c.ms.Load()) }

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = d
	ch := make(chan time.Time, 1)
	c.waits = append(c.waits, ch)
	return ch
}

func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ch := range c.waits {
		ch <- c.now()
	}
	c.waits = nil
}

func newRig(t testing.TB, change ...func(*subscribe.Options)) *rig {
	t.Helper()
	r := &rig{t: t, disk: disk.New()}
	r.clock.ms.Store(1_700_000_000_000)
	for _, f := range change {
		f(&r.opts)
	}
	r.opts.Webhooks.Targets = webhook.Localhost
	if r.opts.Logger == nil {
		r.opts.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	r.opts.After = r.clock.after
	if r.opts.Chance == nil {
		r.opts.Chance = func() float64 { return 0 }
	}
	r.start()
	t.Cleanup(func() {
		r.close()
		problems, err := r.disk.Problems("hot")
		for _, p := range problems {
			t.Error(p)
		}
		r.must(err)
	})
	return r
}

func (r *rig) start() {
	r.t.Helper()
	r.open()
	r.run()
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	r.hot, err = hot.Open("hot", hot.Options{
		FS: r.disk.FS(), MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Logger: r.opts.Logger,
		Now: r.clock.now, Fatal: func(m string) { panic(m) },
	})
	r.must(err)
	r.opts.Hot = r.hot
	r.Engine, err = subscribe.Open(bg, r.opts)
	r.must(err)
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	engine := r.Engine
	go func() { done <- engine.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
		r.stop = func() {}
	}
}

func (r *rig) close() {
	r.t.Helper()
	r.stop()
	r.must(r.hot.Close())
}

// crash loses power and starts again from what the disk has kept.
func (r *rig) crash() {
	r.t.Helper()
	lost := r.disk.Crash()
	r.close()
	r.disk = lost
	r.start()
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// is fails the test unless err is what was wanted.
func (r *rig) is(err, want error, what string) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited in vain: %s", what)
		}
		r.clock.tick()
		runtime.Gosched()
	}
}

// settle waits until the engine has nothing to do at the present time, but for the
// requests that hang.
func (r *rig) settle() {
	r.t.Helper()
	r.until("the engine is idle", func() bool {
		n, quiet := r.Busy()
		return quiet && n == r.hanging
	})
}

func (r *rig) advance(d time.Duration) {
	r.clock.ms.Add(d.Milliseconds())
	r.clock.tick()
}

func named(path string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: path} }

// put creates a JSON stream, with a first message or without.
func (r *rig) put(path, body string) *hot.Record {
	r.t.Helper()
	return r.putName(named(path), body)
}

func (r *rig) putName(n stream.Name, body string) *hot.Record {
	r.t.Helper()
	if body != "" {
		body += "\n"
	}
	c, err := r.hot.Create(bg, hot.Create{Name: n, ContentType: "application/json", Mode: stream.JSON, Payload: []byte(body)})
	r.must(err)
	return c.Record
}

// post appends a message and returns the tail.
func (r *rig) post(path, body string) string {
	r.t.Helper()
	done, err := r.hot.Append(bg, &hot.Append{ID: r.record(path).ID, ContentType: "application/json", Payload: []byte(body + "\n")})
	r.must(err)
	return done.Tail.String()
}

func (r *rig) record(path string) *hot.Record {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(path))
	r.must(err)
	return rec
}

func (r *rig) tail(path string) string { return r.record(path).TailOffset().String() }

// content is what a stream holds.
func (r *rig) content(path string) string {
	r.t.Helper()
	rec := r.record(path)
	v := r.hot.View()
	defer v.Close()
	b, err := v.Data(nil, rec.ID, 0, rec.Tail)
	r.must(err)
	return string(b)
}

// events are the wakes that a stream holds.
func (r *rig) events(path string) []wakeEvent {
	r.t.Helper()
	var list []wakeEvent
	for dec := json.NewDecoder(bytes.NewReader([]byte(r.content(path)))); ; {
		var e wakeEvent
		if err := dec.Decode(&e); err == io.EOF {
			return list
		} else if err != nil {
			r.t.Fatal(err)
		}
		list = append(list, e)
	}
}

type wakeEvent struct {
	Type           string `json:"type"`
	SubscriptionID string `json:"subscription_id"`
	Stream         string `json:"stream"`
	Generation     uint64 `json:"generation"`
	TS             int64  `json:"ts"`
}

// hook makes a webhook subscription.
func (r *rig) hook(id, url, pattern string, streams ...string) subscribe.Info {
	r.t.Helper()
	i, created, err := r.Put(bg, subscribe.Flat, id, subscribe.Config{
		Type: "webhook", Pattern: pattern, Streams: streams, Webhook: &subscribe.WebhookConfig{URL: url},
	}, root)
	r.must(err)
	if !created {
		r.t.Fatalf("%s was there already", id)
	}
	return i
}

// pull makes a pull-wake subscription with a lease of a second.
func (r *rig) pull(id, wakes, pattern string, streams ...string) subscribe.Info {
	r.t.Helper()
	lease := uint64(1000)
	i, created, err := r.Put(bg, subscribe.Flat, id, subscribe.Config{
		Type: "pull-wake", Pattern: pattern, Streams: streams, WakeStream: wakes, LeaseTTL: &lease,
	}, root)
	r.must(err)
	if !created {
		r.t.Fatalf("%s was there already", id)
	}
	return i
}

func (r *rig) info(id string) subscribe.Info {
	r.t.Helper()
	i, err := r.Get(bg, subscribe.Flat, id, root)
	r.must(err)
	return i
}

// acked is the cursor of a subscription in a stream, "" if it has none.
func (r *rig) acked(id, path string) string {
	r.t.Helper()
	for _, l := range r.info(id).Streams {
		if l.Path == path {
			return l.AckedOffset
		}
	}
	return ""
}

func (r *rig) claim(id string) subscribe.Claimed {
	r.t.Helper()
	c, err := r.Claim(bg, subscribe.Flat, id, "worker")
	r.must(err)
	return c
}

// ackOf is an ack of everything that a wake lists.
func ackOf(wakeID string, generation uint64, streams []subscribe.StreamState, done bool) subscribe.AckRequest {
	a := subscribe.AckRequest{WakeRequest: subscribe.WakeRequest{WakeID: wakeID, Generation: generation}, Done: done}
	for _, s := range streams {
		a.Acks = append(a.Acks, subscribe.StreamAck{Stream: s.Path, Offset: s.TailOffset})
	}
	return a
}

// receiver takes webhooks on the loopback.
type receiver struct {
	*httptest.Server
	r    *rig
	got  chan delivery
	mu   sync.Mutex
	says func() (status int, body string)
}

// delivery is a webhook as it came in.
type delivery struct {
	SubscriptionID string                  `json:"subscription_id"`
	WakeID         string                  `json:"wake_id"`
	Generation     uint64                  `json:"generation"`
	Streams        []subscribe.StreamState `json:"streams"`
	CallbackURL    string                  `json:"callback_url"`
	CallbackToken  string                  `json:"callback_token"`

	raw       []byte
	signature string
	done      bool // the answer said so
}

func (d delivery) ack(done bool) subscribe.AckRequest {
	return ackOf(d.WakeID, d.Generation, d.Streams, done)
}

func (r *rig) receiver(status int, body string) *receiver {
	v := &receiver{r: r, got: make(chan delivery, 10_000)}
	v.answer(status, body)
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	r.t.Cleanup(v.Close)
	return v
}

func (v *receiver) answer(status int, body string) {
	v.answers(func() (int, string) { return status, body })
}

func (v *receiver) answers(f func() (int, string)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.says = f
}

// hold lets requests wait for their answers until answer is called.
func (v *receiver) hold(status int, body string) (answer func()) {
	wait := make(chan struct{})
	answer = sync.OnceFunc(func() { close(wait) })
	v.r.t.Cleanup(answer)
	v.answers(func() (int, string) { <-wait; return status, body })
	return answer
}

func (v *receiver) serve(w http.ResponseWriter, q *http.Request) {
	raw, err := io.ReadAll(q.Body)
	d := delivery{raw: raw, signature: q.Header.Get("Webhook-Signature")}
	if err != nil || json.Unmarshal(raw, &d) != nil || q.Method != http.MethodPost || q.Header.Get("Content-Type") != "application/json" {
		v.r.t.Errorf("received %s %q, %v", q.Method, raw, err)
	}
	v.mu.Lock()
	says := v.says
	v.mu.Unlock()
	v.got <- d
	status, body := says()
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// next waits for a webhook.
func (v *receiver) next() (d delivery) {
	v.r.t.Helper()
	v.r.until("a webhook", func() bool {
		select {
		case d = <-v.got:
			return true
		default:
			return false
		}
	})
	return d
}

// none fails the test if there is a webhook once the engine is idle.
func (v *receiver) none(when string) {
	v.r.t.Helper()
	v.r.settle()
	select {
	case d := <-v.got:
		v.r.t.Errorf("%s there is a webhook %s", when, d.raw)
	default:
	}
}

func paths(streams []subscribe.StreamState) string {
	s := ""
	for _, st := range streams {
		s += fmt.Sprintf("%s %s;", st.LinkType, st.Path)
	}
	return s
}
