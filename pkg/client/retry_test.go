package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"firn/pkg/client"
)

// timed is a network that gives the same answer for ever, and keeps when it was asked.
type timed struct {
	status int
	header http.Header
	body   io.Reader
	hangs  bool
	asked  []time.Duration
	began  time.Time
}

func (n *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	n.asked = append(n.asked, time.Since(n.began))
	if n.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if n.status == 0 {
		return nil, errors.New("connection reset")
	}
	if n.body == nil {
		n.body = strings.NewReader("")
	}
	return &http.Response{StatusCode: n.status, Header: n.header, Body: io.NopCloser(n.body), Request: r}, nil
}

func (n *timed) connect(t *testing.T, o client.Options) *client.Stream {
	t.Helper()
	n.began = time.Now()
	o.HTTP = &http.Client{Transport: n}
	s, err := client.NewStream("http://h/s", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Waits double up to their longest, half of each at random, until it is time to give up.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &timed{}
		s := n.connect(t, client.Options{Retry: client.Retry{First: time.Second, Longest: 8 * time.Second, GiveUp: time.Minute}})
		if _, err := s.Head(t.Context()); !errors.Is(err, client.ErrUnreachable) {
			t.Error(err)
		}
		last := n.asked[len(n.asked)-1]
		if last > time.Minute || last < 52*time.Second || time.Since(n.began) != last {
			t.Errorf("given up at %s, last asked at %s", time.Since(n.began), last)
		}
		for i, most := range []time.Duration{1, 2, 4, 8, 8, 8} {
			if wait := n.asked[i+1] - n.asked[i]; wait > most*time.Second || wait < most*time.Second/2 {
				t.Errorf("wait %d took %s", i, wait)
			}
		}
	})
}

func TestWhatIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			name  string
			net   timed
			retry client.Retry
			do    func(context.Context, *client.Stream) error
			many  bool
		}{
			{"unavailable", timed{status: 503}, client.Retry{}, head, true},
			{"failed", timed{status: 500}, client.Retry{}, head, true},
			{"too many", timed{status: 429}, client.Retry{}, head, true},
			{"not found", timed{status: 404}, client.Retry{}, head, false},
			{"refused", timed{status: 400}, client.Retry{}, head, false},
			{"makes no sense", timed{status: 200}, client.Retry{}, head, false},
			{"told not to", timed{status: 503}, client.Retry{GiveUp: -1}, head, false},
			{"create", timed{}, client.Retry{}, func(ctx context.Context, s *client.Stream) error {
				return second(s.Create(ctx, client.CreateOptions{}))
			}, true},
			{"end", timed{}, client.Retry{}, func(ctx context.Context, s *client.Stream) error { return second(s.End(ctx)) }, true},
			{"append", timed{}, client.Retry{}, func(ctx context.Context, s *client.Stream) error {
				return second(s.Append(ctx, []byte("x"), client.AppendOptions{}))
			}, false},
			{"delete", timed{}, client.Retry{}, func(ctx context.Context, s *client.Stream) error { return s.Delete(ctx) }, false},
		} {
			s := c.net.connect(t, client.Options{Retry: c.retry})
			if err := c.do(t.Context(), s); err == nil || (len(c.net.asked) > 1) != c.many {
				t.Errorf("%s: asked %d times, %v", c.name, len(c.net.asked), err)
			}
		}
	})
}

func head(ctx context.Context, s *client.Stream) error { return second(s.Head(ctx)) }

// The server's own word on when to come back counts.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &timed{status: 503, header: http.Header{"Retry-After": {"40"}}}
		if err := head(t.Context(), n.connect(t, client.Options{})); err == nil {
			t.Error("no error")
		}
		if len(n.asked) != 4 || n.asked[3] != 120*time.Second { // the 4th is at the very end
			t.Errorf("asked at %v", n.asked)
		}
	})
}

// A server that says nothing, or nothing more, is left, and that is no cancellation.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		once := client.Retry{GiveUp: -1}
		n := &timed{hangs: true}
		s := n.connect(t, client.Options{Retry: once, Silence: 30 * time.Second})
		_, err := s.Get(t.Context(), "")
		if !errors.Is(err, client.ErrUnreachable) || errors.Is(err, context.Canceled) || time.Since(n.began) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(n.began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Get(ctx, ""); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's deadline: %v", err)
		}
	})
}
