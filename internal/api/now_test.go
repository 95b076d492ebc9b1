package api_test

import (
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// Whatever a stream holds, a read from now on brings nothing of it, and says where now
// is. Of a closed one it says at once that nothing will come.
func TestNow(t *testing.T) {
	for name, kind := range map[string]struct{ contentType, body, empty string }{
		"JSON":  {"application/json", "[1,2]", "[]"},
		"text":  {"text/plain", "text", ""},
		"bytes": {"application/octet-stream", "\x00", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, api.Options{LongPollTimeout: 20 * time.Millisecond, Clock: fixedClock})
			open := c.create("/ds/trial/open", kind.contentType, kind.body)
			empty := c.create("/ds/trial/empty", kind.contentType, "")
			for path, tail := range map[string]string{"open": open, "empty": empty} {
				a := c.want(200, "GET", "/ds/trial/"+path+"?offset=now", "", "If-None-Match: *")
				if a.body != kind.empty || a.header.Get("Content-Type") != kind.contentType || a.header.Get("Etag") != "" {
					t.Errorf("%s: %q, %v", path, a.body, a.header)
				}
				tailAnswer(t, path, a, tail, false)
				a = c.want(204, "GET", "/ds/trial/"+path+"?live=long-poll&offset=now", "")
				if a.header.Get("Stream-Cursor") != "1000" {
					t.Errorf("%s: cursor %q", path, a.header.Get("Stream-Cursor"))
				}
				tailAnswer(t, path+", long-poll", a, tail, false)
				e := c.subscribe("/ds/trial/" + path + "?live=sse&offset=now").control()
				if e.StreamNextOffset != tail || !e.UpToDate || e.StreamClosed || e.StreamCursor == nil || *e.StreamCursor != "1000" {
					t.Errorf("%s, SSE: %+v", path, e)
				}
			}
		})
	}
}

func TestNowOfAClosedStream(t *testing.T) {
	for name, kind := range map[string]struct{ contentType, body, empty string }{
		"JSON":  {"application/json", "[1,2]", "[]"},
		"text":  {"text/plain", "text", ""},
		"empty": {"application/json", "", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			// The client gives up long before a poll or an event stream would end by itself.
			c, _ := connect(t, api.Options{LongPollTimeout: time.Hour, SSEMaxAge: time.Hour})
			tail := c.create("/ds/trial/s", kind.contentType, kind.body, "Stream-Closed: true")
			a := c.want(200, "GET", "/ds/trial/s?offset=now", "")
			if a.body != kind.empty {
				t.Errorf("got %q", a.body)
			}
			tailAnswer(t, "catch-up", a, tail, true)
			tailAnswer(t, "long-poll", c.want(204, "GET", "/ds/trial/s?live=long-poll&offset=now", ""), tail, true)
			e := c.subscribe("/ds/trial/s?live=sse&offset=now")
			if c := e.control(); c.StreamNextOffset != tail || !c.UpToDate || !c.StreamClosed {
				t.Errorf("SSE: %+v", c)
			}
			if got := e.next(); got != "" {
				t.Errorf("SSE goes on: %q", got)
			}
		})
	}
}

// tailAnswer fails unless an answer is that of the tail.
func tailAnswer(t *testing.T, what string, a answer, tail string, closed bool) {
	t.Helper()
	if a.next() != tail || a.header.Get("Stream-Up-To-Date") != "true" || (a.header.Get("Stream-Closed") == "true") != closed ||
		!strings.Contains(a.header.Get("Cache-Control"), "no-store") {
		t.Errorf("%s: %v", what, a.header)
	}
}
