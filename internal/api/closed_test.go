package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

func TestWritesToAClosedStream(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const text, closes = "Content-Type: text/plain", "Stream-Closed: true"
	by := func(id, epoch, seq string) []string {
		return []string{"Producer-Id: " + id, "Producer-Epoch: " + epoch, "Producer-Seq: " + seq}
	}
	c.create("/ds/trial/s", "text/plain", "")
	c.want(200, "POST", "/ds/trial/s", "a", append(by("p", "1", "0"), text)...)
	tail := c.want(200, "POST", "/ds/trial/s", "z", append(by("p", "1", "1"), text, closes)...).next()
	for _, tt := range []struct {
		name, body string
		header     []string
		status     int
	}{
		{"close", "", []string{closes}, 204},
		{"close of another type", "", []string{closes, "Content-Type: application/json"}, 204},
		{"close of a broken type", "", []string{closes, "Content-Type: text/"}, 204},
		{"the closing request", "z", append(by("p", "1", "1"), text, closes), 204},
		{"the closing request with another body", "y", append(by("p", "1", "1"), text, closes), 204},
		{"append", "x", []string{text}, 409},
		{"append of another type", "{}", []string{"Content-Type: application/json"}, 409},
		{"append and close", "x", []string{text, closes}, 409},
		{"an earlier request", "a", append(by("p", "1", "0"), text), 409},
		{"the next request", "x", append(by("p", "1", "2"), text), 409},
		{"a request after a gap", "x", append(by("p", "1", "9"), text), 409},
		{"a later epoch", "x", append(by("p", "2", "0"), text, closes), 409},
		{"another producer", "x", append(by("q", "0", "0"), text, closes), 409},
		{"close by another producer", "", append(by("q", "0", "0"), closes), 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := c.do("POST", "/ds/trial/s", tt.body, tt.header...)
			if a.status != tt.status || a.header.Get("Stream-Closed") != "true" || a.next() != tail {
				t.Fatalf("got %d %s, %v", a.status, a.body, a.header)
			}
			if a.status == 409 && (a.code() != "stream_closed" || a.header.Get("Content-Type") != "application/problem+json") {
				t.Errorf("got %s of %q", a.body, a.header.Get("Content-Type"))
			}
		})
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != "az" {
		t.Errorf("the stream has %q", got)
	}
}

// A request without a body has no type, whatever its headers say.
func TestCloseIgnoresTheContentType(t *testing.T) {
	c, _ := connect(t, api.Options{})
	for i, kind := range []string{"text/plain", "application/json", "text/", ""} {
		path := "/ds/trial/s" + string(rune('0'+i))
		tail := c.create(path, "text/plain", "x")
		if a := c.want(204, "POST", path, "", "Stream-Closed: true", "Content-Type: "+kind); a.header.Get("Stream-Closed") != "true" || a.next() != tail {
			t.Errorf("%q: %v", kind, a.header)
		}
	}
}

// Only the page that reaches the end of a closed stream says so, and every one behind it.
func TestPagesOfAClosedStream(t *testing.T) {
	c, _ := connect(t, api.Options{})
	first := `"` + strings.Repeat("a", 4<<20) + `"` // as much as a page may have
	c.create("/ds/trial/s", "application/json", first)
	tail := c.append("/ds/trial/s", "application/json", "2", "Stream-Closed: true")
	offset := "-1"
	for _, want := range []struct {
		body string
		last bool
	}{{"[" + first + "]", false}, {"[2]", true}, {"[]", true}} {
		a := c.want(200, "GET", "/ds/trial/s?offset="+offset, "")
		if a.body != want.body || (a.header.Get("Stream-Up-To-Date") == "true") != want.last || (a.header.Get("Stream-Closed") == "true") != want.last {
			t.Errorf("at %s: %.20q, %v", offset, a.body, a.header)
		}
		offset = a.next()
	}
	if offset != tail {
		t.Errorf("the end is %s, want %s", offset, tail)
	}
}

// The page that a closed stream ends with has a cursor, as every long-poll with data;
// the answer behind it needs none.
func TestLongPollOfTheLastPage(t *testing.T) {
	c, _ := connect(t, api.Options{Clock: fixedClock})
	c.create("/ds/trial/s", "text/plain", "all", "Stream-Closed: true")
	const poll = "/ds/trial/s?live=long-poll&offset="
	a := c.want(200, "GET", poll+"-1&cursor=7", "")
	if a.body != "all" || a.header.Get("Stream-Closed") != "true" || a.header.Get("Stream-Cursor") != "1000" {
		t.Errorf("last page: %q, %v", a.body, a.header)
	}
	if b := c.want(204, "GET", poll+a.next(), ""); b.header.Get("Stream-Closed") != "true" || b.next() != a.next() {
		t.Errorf("behind it: %v", b.header)
	}
}
