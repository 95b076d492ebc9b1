package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// busyWriter is a client of a stream to which something is appended whenever it has
// been sent something.
type busyWriter struct {
	header http.Header
	events []string
	append func()
}

func (w *busyWriter) Header() http.Header { return w.header }
func (w *busyWriter) WriteHeader(int)     {}
func (w *busyWriter) Flush()              {}

func (w *busyWriter) Write(p []byte) (int, error) {
	w.events = append(w.events, string(p))
	w.append()
	return len(p), nil
}

// A stream that is never quiet kept its readers for ever: their age was looked at only
// while there was nothing to send.
func TestEventStreamOfABusyStreamGrowsOld(t *testing.T) {
	for name, o := range map[string]api.Options{
		"by age":   {SSEMaxAge: 50 * time.Millisecond},
		"by drain": {},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := connect(t, o)
			c.create("/ds/trial/s", "text/plain", "x")
			w := &busyWriter{header: http.Header{}}
			last := ""
			w.append = func() {
				last = c.append("/ds/trial/s", "text/plain", "x")
				if len(w.events) == 5 && name == "by drain" {
					s.Drain()
				}
			}
			done := make(chan struct{})
			go func() {
				s.Handler().ServeHTTP(w, request("GET", "/ds/trial/s?offset=-1&live=sse").WithContext(t.Context()))
				close(done)
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the event stream goes on")
			}
			end := w.events[len(w.events)-1]
			if !strings.Contains(end, "event: control\n") || strings.Contains(end, "streamClosed") {
				t.Errorf("the last event is %q", end)
			}
			// Whoever comes back with the last offset misses nothing.
			_, control, _ := strings.Cut(end, `"streamNextOffset":"`)
			if got := c.want(200, "GET", "/ds/trial/s?offset="+control[:33], ""); got.body == "" || got.next() != last {
				t.Errorf("after %q: %q up to %s of %s", end, got.body, got.next(), last)
			}
		})
	}
}

// An event stream that ends while it holds half of a character back says so by its offset.
func TestEventStreamEndsInsideACharacter(t *testing.T) {
	c, _ := connect(t, api.Options{SSEMaxAge: 50 * time.Millisecond})
	tail := c.create("/ds/trial/s", "text/plain", "caf\xc3")
	e := c.subscribe("/ds/trial/s?live=sse&offset=-1")
	first, at := e.data()
	end := e.control()
	if first != "caf" || end.StreamNextOffset != at.StreamNextOffset || end.StreamNextOffset >= tail {
		t.Errorf("got %q to %+v, then %+v", first, at, end)
	}
	if got := e.next(); got != "" {
		t.Errorf("after the end: %q", got)
	}
	c.append("/ds/trial/s", "text/plain", "\xa9")
	if got, _ := c.subscribe("/ds/trial/s?live=sse&offset=" + end.StreamNextOffset).data(); got != "\u00e9" {
		t.Errorf("coming back: %q", got)
	}
}
