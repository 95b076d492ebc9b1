package api_test

import (
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// TestHeadersOfEveryAnswer has errors; this has all that succeeds.
func TestSecurityHeadersOfData(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond})
	const kind = "Content-Type: text/html"
	tail := c.want(201, "PUT", "/ds/trial/s", "<script>", kind).next()
	for _, r := range []struct {
		status             int
		method, path, body string
		header             []string
		noStore            bool
	}{
		{201, "PUT", "/ds/trial/t", "", []string{kind}, true},
		{200, "PUT", "/ds/trial/t", "", []string{kind}, true},
		{204, "POST", "/ds/trial/s", "x", []string{kind}, true},
		{200, "GET", "/ds/trial/s", "", nil, false},
		{304, "GET", "/ds/trial/s", "", []string{"If-None-Match: *"}, false},
		{200, "GET", "/ds/trial/s?offset=now", "", nil, true},
		{200, "GET", "/ds/trial/s?live=long-poll&offset=" + tail, "", nil, true},
		{204, "GET", "/ds/trial/s?live=long-poll&offset=now", "", nil, true},
		{200, "HEAD", "/ds/trial/s", "", nil, true},
		{204, "POST", "/ds/trial/s", "", []string{"Stream-Closed: true"}, true},
		{200, "GET", "/ds/trial/s?live=sse&offset=now", "", nil, true},
		{200, "GET", "/ds/trial/s/bootstrap", "", nil, true},
		{204, "PUT", "/ds/trial/s/snapshot/" + tail, "S", nil, true},
		{200, "GET", "/ds/trial/s/snapshot/" + tail, "", nil, false},
		{204, "DELETE", "/ds/trial/s", "", nil, true},
	} {
		h := c.want(r.status, r.method, r.path, r.body, r.header...).header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("%d %s %s: %v", r.status, r.method, r.path, h)
		}
		if got := h.Get("Cache-Control"); strings.Contains(got, "no-store") != r.noStore || !r.noStore && !strings.Contains(got, "private") {
			t.Errorf("%d %s %s: Cache-Control %q", r.status, r.method, r.path, got)
		}
	}
}
