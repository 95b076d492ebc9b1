package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

// Of a header that is there twice nobody knows which line was meant, even if they are
// the same: it is refused, and nothing happens.
func TestRepeatedHeaders(t *testing.T) {
	c, _ := connect(t, api.Options{})
	at := c.create("/ds/trial/s", "text/plain", "x")
	const asText = "Content-Type: text/plain"
	producer := []string{"Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0"}
	for _, tt := range []struct {
		method, path, body string
		header             []string
	}{
		{"PUT", "/ds/trial/new", "", []string{asText, asText}},
		{"PUT", "/ds/trial/new", "", []string{asText, "Content-Type: text/html"}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-TTL: 60", "Stream-TTL: 60"}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-Expires-At: 2030-01-01T00:00:00Z", "Stream-Expires-At: 2040-01-01T00:00:00Z"}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-Closed: true", "Stream-Closed: true"}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-Forked-From: /ds/trial/s", "Stream-Forked-From: /ds/trial/s"}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-Forked-From: /ds/trial/s", "Stream-Fork-Offset: " + at, "Stream-Fork-Offset: " + at}},
		{"PUT", "/ds/trial/new", "", []string{"Stream-Forked-From: /ds/trial/s", "Stream-Fork-Sub-Offset: 0", "Stream-Fork-Sub-Offset: 0"}},
		{"POST", "/ds/trial/s", "y", []string{asText, asText}},
		{"POST", "/ds/trial/s", "", []string{"Stream-Closed: true", asText, asText}},
		{"POST", "/ds/trial/s", "y", []string{asText, "Stream-Closed: true", "Stream-Closed: false"}},
		{"POST", "/ds/trial/s", "y", []string{asText, "Stream-Seq: 1", "Stream-Seq: 2"}},
		{"POST", "/ds/trial/s", "y", append([]string{asText, "Producer-Id: p"}, producer...)},
		{"POST", "/ds/trial/s", "y", append([]string{asText, "Producer-Epoch: 0"}, producer...)},
		{"POST", "/ds/trial/s", "y", append([]string{asText, "Producer-Seq: 1"}, producer...)},
		{"PUT", "/ds/trial/s/snapshot/" + at, "S", []string{asText, asText}},
	} {
		if code := c.want(400, tt.method, tt.path, tt.body, tt.header...).code(); code != "header_repeated" {
			t.Errorf("%s %s with %q: %s", tt.method, tt.path, tt.header, code)
		}
	}
	c.want(404, "HEAD", "/ds/trial/new", "")
	c.want(404, "GET", "/ds/trial/s/snapshot", "")
	if a := c.want(200, "GET", "/ds/trial/s", ""); a.body != "x" || a.header.Get("Stream-Closed") != "" {
		t.Errorf("stream holds %q, %v", a.body, a.header)
	}
}

// Who asks for too much is told how much there may be.
func TestProblemNamesTheBound(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.want(201, "PUT", "/ds/trial/long", "", "Stream-TTL: 9007199254740")
	a := c.want(400, "PUT", "/ds/trial/longer", "", "Stream-TTL: 9007199254741")
	if a.code() != "ttl_invalid" || !strings.Contains(a.body, "from 0 to 9007199254740 ") {
		t.Errorf("got %s", a.body)
	}
}
