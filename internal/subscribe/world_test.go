package subscribe_test

import (
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/subscribe"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// world is a rig with a model of what its subscriptions must say.
type world struct {
	*rand.Rand
	r    *rig
	subs []*model

	receiver *httptest.Server
	reliable atomic.Bool // receivers do what they are asked to
	mu       sync.Mutex  // guards what follows: receivers use it
	moods    *rand.Rand
	got      []delivery
}

var (
	flatPaths     = []string{"a/0", "a/1", "b/0", "b/1", "c", "wakes/0", "wakes/1"}
	bucketedPaths = []string{"trial/x0", "trial/x1", "default/c", "trial/wakes"}
	flatGlobs     = []string{"a/*", "*/0/**", "b/**", "c", "a/0", "**"}
	bucketedGlobs = []string{"trial/*", "*/x0", "*/*"}
)

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), moods: rand.New(rand.NewPCG(seed, 2)), r: newRig(t, quiet)}
	w.receiver = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(w.receiver.Close)
	w.r.must(w.r.hot.CreateBucket(bg, "trial"))
	return w
}

func (w *world) chance(n int) bool { return w.IntN(n) == 0 }

func pick[T any](w *world, list []T) T { return list[w.IntN(len(list))] }

func (w *world) paths(s subscribe.Scope) []string {
	if s == subscribe.Flat {
		return flatPaths
	}
	return bucketedPaths
}

// any is a stream of either surface.
func (w *world) any() (subscribe.Scope, string) {
	s := pick(w, []subscribe.Scope{subscribe.Flat, subscribe.Bucketed})
	return s, pick(w, w.paths(s))
}

func (w *world) name(s subscribe.Scope, path string) stream.Name {
	n, err := s.Name(path)
	w.r.must(err)
	return n
}

// record is that of a stream which clients see, nil if there is none.
func (w *world) record(s subscribe.Scope, path string) *hot.Record {
	v := w.r.hot.View()
	defer v.Close()
	rec, err := v.Stream(w.name(s, path))
	if errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	w.r.must(err)
	if rec.Deleted || w.r.hot.Expired(rec) {
		return nil
	}
	return rec
}

func (w *world) settle() { w.r.settle() }

// serve receives webhooks: those of the world's receivers and their moods.
func (w *world) serve(a http.ResponseWriter, q *http.Request) {
	var d delivery
	raw, err := io.ReadAll(q.Body)
	if err != nil || json.Unmarshal(raw, &d) != nil {
		return // the server has crashed
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	mood := w.moods.IntN(6)
	if w.reliable.Load() {
		mood = 0
	}
	d.done = mood <= 1
	w.got = append(w.got, d)
	switch {
	case d.done:
		io.WriteString(a, done)
	case mood <= 3:
		a.WriteHeader(http.StatusAccepted)
	default:
		a.WriteHeader(http.StatusServiceUnavailable)
	}
}

// create makes a stream, as a fork at times. What it matches begins at its base.
func (w *world) create() {
	s, path := w.any()
	c := hot.Create{Name: w.name(s, path), ContentType: "application/json", Mode: stream.JSON}
	if w.chance(2) {
		c.Payload = []byte("1\n2\n")
	}
	wakes := strings.Contains(path, "wakes")
	if w.chance(6) && !wakes {
		c.Lifetime = stream.Lifetime{Sliding: true, TTL: 20}
	}
	if w.chance(3) && !wakes {
		if src := w.existing(); src != nil {
			c.Fork = &hot.CreateFork{Source: src.ID, From: src.Name, Position: src.Base + uint64(w.IntN(int(src.Tail-src.Base+1)))/2*2}
		}
	}
	made, err := w.r.hot.Create(bg, c)
	if err == nil && made.Created {
		w.forget(c.Name)
	}
}

// forget drops what the model knows of a stream: it is gone, or new.
func (w *world) forget(n stream.Name) {
	for _, s := range w.subs {
		if path, ok := s.scope.Path(n); ok {
			delete(s.acked, path)
		}
	}
}

func (w *world) grow() {
	if rec := w.existing(); rec != nil {
		_, _ = w.r.hot.Append(bg, &hot.Append{ID: rec.ID, ContentType: rec.ContentType, Payload: []byte("3\n")})
	}
}

// existing is a stream that clients see, nil if none is found soon.
func (w *world) existing() *hot.Record {
	for range 8 {
		if rec := w.record(w.any()); rec != nil {
			return rec
		}
	}
	return nil
}

// growBeside has streams grow until the returned function is called.
func (w *world) growBeside() (stop func()) {
	var ids []stream.ID
	for range 3 {
		if rec := w.existing(); rec != nil {
			ids = append(ids, rec.ID)
		}
	}
	store, end := w.r.hot, make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for i := range 30 {
			select {
			case <-end:
				return
			default:
			}
			if len(ids) > 0 {
				_, _ = store.Append(bg, &hot.Append{ID: ids[i%len(ids)], ContentType: "application/json", Payload: []byte("4\n")})
			}
		}
	})
	return func() { close(end); work.Wait() }
}

func (w *world) remove() {
	if rec := w.existing(); rec != nil {
		w.r.must(w.r.hot.Delete(bg, rec.ID))
		w.forget(rec.Name)
	}
}

func (w *world) closeOne() {
	if rec := w.existing(); rec != nil {
		_, _ = w.r.hot.Append(bg, &hot.Append{ID: rec.ID, ContentType: rec.ContentType, Close: true})
	}
}

// expire lets go of a stream that clients do not see any more.
func (w *world) expire() {
	v := w.r.hot.View()
	rec, err := v.Stream(w.name(w.any()))
	v.Close()
	if err == nil && !rec.Deleted && w.r.hot.Expired(rec) {
		w.r.must(w.r.hot.Expire(bg, rec.ID))
		w.forget(rec.Name)
	}
}

// renew makes a wake stream that takes events.
func (w *world) renew(s subscribe.Scope, path string) {
	for {
		rec := w.record(s, path)
		if rec != nil && !rec.Closed {
			return
		}
		if rec != nil {
			w.r.must(w.r.hot.Delete(bg, rec.ID))
		}
		w.forget(w.name(s, path))
		_, err := w.r.hot.Create(bg, hot.Create{Name: w.name(s, path), ContentType: "application/json", Mode: stream.JSON})
		if errors.Is(err, stream.ErrNameBlocked) {
			w.unfork(w.name(s, path))
			continue
		}
		w.r.must(err)
	}
}

// unfork deletes what keeps a name from being free: forks.
func (w *world) unfork(stream.Name) {
	for _, s := range []subscribe.Scope{subscribe.Flat, subscribe.Bucketed} {
		for _, path := range w.paths(s) {
			if rec := w.record(s, path); rec != nil && rec.Fork != nil {
				w.r.must(w.r.hot.Delete(bg, rec.ID))
				w.forget(rec.Name)
			}
		}
	}
}

// pass lets time pass, less than a lease or more.
func (w *world) pass() {
	w.r.advance(pick(w, []time.Duration{time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, time.Minute}))
}

// crash loses power while things are under way, or at rest.
func (w *world) crash() {
	if w.chance(2) {
		w.settle()
	}
	w.r.crash()
	w.mu.Lock()
	defer w.mu.Unlock()
	// What was delivered after the power was lost is of wakes that never were.
	for _, s := range w.subs {
		s.latest = 0
	}
}
