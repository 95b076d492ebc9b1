package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"firn/pkg/client"
	"firn/pkg/stream"
)

// log is a server that admits as B§5.2.1 says, one stream in memory. Each request first
// passes before, which may answer in its place.
type log struct {
	before func(w http.ResponseWriter, seq uint64, attempt int) bool

	mu       sync.Mutex
	state    *stream.ProducerState
	data     string
	attempts map[uint64]int
	under    int
	most     int
	gaps     int
	gapped   chan struct{} // closed at the first gap, if not nil
}

func (l *log) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	epoch, _ := strconv.ParseUint(r.Header.Get("Producer-Epoch"), 10, 64)
	seq, _ := strconv.ParseUint(r.Header.Get("Producer-Seq"), 10, 64)
	l.mu.Lock()
	l.attempts[seq]++
	attempt := l.attempts[seq]
	l.under++
	l.most = max(l.most, l.under)
	l.mu.Unlock()
	if l.before != nil && l.before(w, seq, attempt) {
		l.mu.Lock()
		l.under--
		l.mu.Unlock()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.under--
	p := stream.Producer{ID: "p", Epoch: epoch, Seq: seq}
	verdict, err := stream.Admit(stream.WriterState{ContentType: "text/x", Producer: l.state}, stream.Append{ContentType: "text/x", Producer: &p})
	h := w.Header()
	if gap, ok := errors.AsType[*stream.SeqGapError](err); ok {
		if l.gaps++; l.gaps == 1 && l.gapped != nil {
			close(l.gapped)
		}
		h.Set("Producer-Expected-Seq", fmt.Sprint(gap.Expected))
		h.Set("Producer-Received-Seq", fmt.Sprint(gap.Received))
		w.WriteHeader(http.StatusConflict)
		return
	}
	if stale, ok := errors.AsType[*stream.StaleEpochError](err); ok {
		h.Set("Producer-Epoch", fmt.Sprint(stale.Current))
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if verdict == stream.Accepted {
		l.data += string(body)
		l.state = &stream.ProducerState{Epoch: epoch, Seq: seq}
	}
	h.Set("Stream-Next-Offset", fmt.Sprint(len(l.data)))
	h.Set("Producer-Seq", fmt.Sprint(l.state.Seq))
	if verdict == stream.Duplicate {
		w.WriteHeader(http.StatusNoContent)
	}
}

func (l *log) produce(t *testing.T, o client.ProducerOptions) *client.Producer {
	t.Helper()
	l.attempts = make(map[uint64]int)
	srv := httptest.NewServer(l)
	t.Cleanup(srv.Close)
	s, err := client.NewStream(srv.URL, client.Options{
		HTTP: srv.Client(), Retry: client.Retry{First: time.Millisecond, GiveUp: 200 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	o.ContentType, o.BatchBytes = "text/x", 1
	p, err := s.NewProducer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p
}

func say(p *client.Producer, text string) error {
	for i := range text {
		if err := p.Append(context.Background(), []byte{text[i]}); err != nil {
			return err
		}
	}
	return p.Flush(context.Background())
}

const text = "abcdefghijklmnopqrstuvwxyz"

// A request that overtakes another is repeated behind it, and no more of them are under
// way than allowed.
func TestOvertaking(t *testing.T) {
	for _, inFlight := range []int{1, 2, 4} {
		l := &log{gapped: make(chan struct{})}
		l.before = func(_ http.ResponseWriter, seq uint64, attempt int) bool {
			if inFlight > 1 && seq == 1 && attempt == 1 {
				<-l.gapped
			}
			return false
		}
		p := l.produce(t, client.ProducerOptions{InFlight: inFlight})
		if err := say(p, text); err != nil || l.data != text {
			t.Errorf("%d in flight: %q, %v", inFlight, l.data, err)
		}
		if l.most > inFlight || inFlight > 1 && l.gaps == 0 {
			t.Errorf("%d in flight: at most %d, with %d gaps", inFlight, l.most, l.gaps)
		}
	}
}

// Whatever a server or something before it says that is no acknowledgement, is none.
func TestUnacknowledged(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(w http.ResponseWriter, seq uint64, attempt int) bool
		is     func(error) bool
		acked  uint64
	}{
		{"a portal", func(w http.ResponseWriter, seq uint64, _ int) bool {
			if seq == 2 {
				io.WriteString(w, "<html>please log in")
			}
			return seq == 2
		}, func(err error) bool { return errors.Is(err, client.ErrAnswer) }, 2},
		{"refused", func(w http.ResponseWriter, seq uint64, _ int) bool {
			if seq == 3 {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			}
			return seq == 3
		}, func(err error) bool { e, ok := errors.AsType[*client.Error](err); return ok && e.Status == 413 }, 3},
		{"no longer", func(w http.ResponseWriter, seq uint64, _ int) bool {
			if seq >= 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return seq >= 1
		}, func(err error) bool { e, ok := errors.AsType[*client.Error](err); return ok && e.Status == 503 }, 1},
		{"too many producers", func(w http.ResponseWriter, seq uint64, attempt int) bool {
			w.WriteHeader(http.StatusTooManyRequests)
			io.WriteString(w, `{"code":"producer_limit"}`)
			return true
		}, func(err error) bool { return errors.Is(err, stream.ErrProducerLimit) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &log{before: c.before}
			p := l.produce(t, client.ProducerOptions{})
			if err := say(p, text); !c.is(err) || p.Acked() != c.acked {
				t.Errorf("%v, %d acknowledged", err, p.Acked())
			}
			if err := p.Close(t.Context()); !c.is(err) {
				t.Errorf("close: %v", err)
			}
			if l.data != text[:c.acked] {
				t.Errorf("the stream has %q", l.data)
			}
		})
	}
}

// A server that has lost what it acknowledged is not written on.
func TestServerForgets(t *testing.T) {
	l := &log{}
	p := l.produce(t, client.ProducerOptions{})
	if err := say(p, "abc"); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.state, l.data = &stream.ProducerState{Seq: 0}, "a"
	l.mu.Unlock()
	err := say(p, "def")
	if gap, ok := errors.AsType[*stream.SeqGapError](err); !ok || gap.Expected != 1 || gap.Received != 3 || l.data != "a" {
		t.Errorf("%v, the stream has %q", err, l.data)
	}
}

// An epoch that may have been accepted is not given up for another: that would append
// the same twice.
func TestClaimInDoubt(t *testing.T) {
	l := &log{}
	l.before = func(w http.ResponseWriter, seq uint64, attempt int) bool {
		if attempt > 1 {
			return false
		}
		l.mu.Lock()
		l.state = &stream.ProducerState{Epoch: 9}
		l.mu.Unlock()
		panic(http.ErrAbortHandler) // the answer is lost
	}
	p := l.produce(t, client.ProducerOptions{AutoClaim: true})
	if stale, ok := errors.AsType[*stream.StaleEpochError](say(p, "a")); !ok || stale.Current != 9 {
		t.Errorf("got %v", p.Err())
	}
}

// Somebody else who writes with the same id and epoch is noticed.
func TestSharedEpoch(t *testing.T) {
	for _, state := range []stream.ProducerState{{Seq: 0}, {Seq: 40}} {
		l := &log{state: &state}
		p := l.produce(t, client.ProducerOptions{})
		if err := say(p, "a"); !errors.Is(err, client.ErrEpochUsed) || p.Acked() != 0 {
			t.Errorf("at %d: %v", state.Seq, err)
		}
	}
	l := &log{}
	l.before = func(w http.ResponseWriter, seq uint64, attempt int) bool {
		if seq == 1 && attempt == 1 {
			l.mu.Lock()
			l.state.Seq = 40
			l.mu.Unlock()
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	p := l.produce(t, client.ProducerOptions{})
	if err := say(p, "ab"); !errors.Is(err, client.ErrEpochUsed) || p.Acked() != 1 {
		t.Errorf("in the middle: %v", err)
	}
}

// Not every server says with a duplicate where the stream ends; whoever says nothing of
// the producer was none.
func TestDuplicateWithoutOffset(t *testing.T) {
	for header, known := range map[string]bool{"Producer-Epoch: 0\nProducer-Seq: 0": true, "X-Id: 9": false} {
		_, s := serve(t, client.Options{Retry: client.Retry{First: time.Millisecond}},
			reply{status: 500}, reply{status: 204, header: header})
		p, err := s.NewProducer(client.ProducerOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Append(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(t.Context()); (err == nil) != known || !known && !errors.Is(err, client.ErrAnswer) {
			t.Errorf("%s: %v", header, err)
		}
	}
}
