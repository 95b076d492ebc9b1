package api_test

import (
	"testing"

	"firn/internal/api"
)

// TestPutMatchesWhatIsThere creates a stream, or a fork, and asks for it again.
func TestPutMatchesWhatIsThere(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/source", "text/plain", "0123456789", "Stream-TTL: 3600")
	c.create("/ds/trial/dated", "text/plain", "0123456789", "Stream-Expires-At: 2090-01-02T03:04:05.500Z")
	at := func(position string) string { return "Stream-Fork-Offset: " + tail[:17] + position }
	const (
		text   = "Content-Type: text/plain"
		closed = "Stream-Closed: true"
		hour   = "Stream-TTL: 3600"
		date   = "Stream-Expires-At: 2090-01-02T03:04:05.500Z"
		from   = "Stream-Forked-From: /ds/trial/source"
		five   = "0000000000000005"
		zero   = "Stream-Fork-Offset: 0000000000000000_0000000000000000"
	)
	type request []string
	for _, tt := range []struct {
		name          string
		first, second request
		status        int
	}{
		{"alike", request{text}, request{text}, 200},
		{"no type", request{}, request{}, 200},
		{"no type and its default", request{}, request{"Content-Type: application/octet-stream"}, 200},
		{"no type, but there is one", request{text}, request{}, 409},
		{"case and parameters of the type", request{text}, request{"Content-Type: TEXT/Plain; charset=utf-8"}, 200},
		{"other type", request{text}, request{"Content-Type: text/html"}, 409},

		{"closed", request{text, closed}, request{text, closed}, 200},
		{"closed in capitals", request{text, closed}, request{text, "Stream-Closed: TRUE"}, 200},
		{"open, is closed", request{text, closed}, request{text}, 409},
		{"false, is closed", request{text, closed}, request{text, "Stream-Closed: false"}, 409},
		{"closed, is open", request{text}, request{text, closed}, 409},
		{"capitals, is open", request{text}, request{text, "Stream-Closed: TRUE"}, 409},
		{"yes, is open", request{text}, request{text, "Stream-Closed: yes"}, 200},

		{"TTL", request{text, hour}, request{text, hour}, 200},
		{"other TTL", request{text, hour}, request{text, "Stream-TTL: 3601"}, 409},
		{"TTL lost", request{text, hour}, request{text}, 409},
		{"TTL new", request{text}, request{text, hour}, 409},
		{"TTL, is dated", request{text, date}, request{text, hour}, 409},

		{"date", request{text, date}, request{text, date}, 200},
		{"date with another zone", request{text, date}, request{text, "Stream-Expires-At: 2090-01-02T05:34:05.5+02:30"}, 200},
		{"date with more zeros", request{text, date}, request{text, "Stream-Expires-At: 2090-01-02T03:04:05.500000000+00:00"}, 200},
		{"date in small letters", request{text, date}, request{text, "Stream-Expires-At: 2090-01-02t03:04:05.5z"}, 200},
		{"date a millisecond on", request{text, date}, request{text, "Stream-Expires-At: 2090-01-02T03:04:05.501Z"}, 409},
		{"same clock in another zone", request{text, date}, request{text, "Stream-Expires-At: 2090-01-02T03:04:05.500+01:00"}, 409},
		{"date lost", request{text, date}, request{text}, 409},
		{"date new", request{text}, request{text, date}, 409},

		{"fork", request{from, at(five)}, request{from, at(five)}, 200},
		{"fork, type spelt out", request{from, at(five)}, request{from, at(five), text}, 200},
		{"fork, other type", request{from, at(five)}, request{from, at(five), "Content-Type: text/html"}, 409},
		{"fork, the offset left out", request{from, at(five)}, request{from}, 200},
		{"fork at the tail, twice without", request{from}, request{from}, 200},
		{"fork at the tail, spelt out", request{from}, request{from, "Stream-Fork-Offset: " + tail}, 200},
		{"fork at the beginning in two spellings", request{from, zero}, request{from, at("0000000000000000")}, 200},
		{"fork, other offset", request{from, at(five)}, request{from, at("0000000000000004")}, 409},
		{"fork, sub-offset", request{from, at(five), "Stream-Fork-Sub-Offset: 2"}, request{from, at(five), "Stream-Fork-Sub-Offset: 2"}, 200},
		{"fork, other sub-offset", request{from, at(five), "Stream-Fork-Sub-Offset: 2"}, request{from, at(five), "Stream-Fork-Sub-Offset: 3"}, 409},
		{"fork, sub-offset lost", request{from, at(five), "Stream-Fork-Sub-Offset: 2"}, request{from, at(five)}, 409},
		{"fork, sub-offset 0 and none", request{from, at(five), "Stream-Fork-Sub-Offset: 0"}, request{from, at(five)}, 200},
		{"fork, other source", request{from, at(five)}, request{"Stream-Forked-From: /ds/trial/dated", at(five)}, 409},
		{"fork of the flat surface", request{from}, request{"Stream-Forked-From: /v1/stream/source"}, 409},
		{"fork over a stream", request{text, hour}, request{from, hour}, 409},
		{"stream over a fork", request{from}, request{text}, 409},

		// What was asked for is compared, not what was inherited.
		{"fork with an inherited TTL", request{from}, request{from}, 200},
		{"fork with an inherited TTL, spelt out", request{from}, request{from, hour}, 409},
		{"fork with a TTL of its own", request{from, "Stream-TTL: 60"}, request{from, "Stream-TTL: 60"}, 200},
		{"fork with a TTL of its own, lost", request{from, "Stream-TTL: 60"}, request{from}, 409},
		{"fork with an inherited date", request{"Stream-Forked-From: /ds/trial/dated"}, request{"Stream-Forked-From: /ds/trial/dated"}, 200},
		{"fork closed", request{from, closed}, request{from, closed}, 200},
		{"fork open, is closed", request{from, closed}, request{from}, 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const path = "/ds/trial/s"
			was := c.want(201, "PUT", path, "", tt.first...)
			is := c.do("PUT", path, "", tt.second...)
			if is.status != tt.status || is.status == 409 && is.code() != "stream_exists" && is.code() != "content_type_mismatch" {
				t.Errorf("got %d %s, want %d", is.status, is.body, tt.status)
			}
			if is.status == 200 {
				for _, name := range []string{"Stream-Next-Offset", "Content-Type", "Stream-Closed"} {
					if got, want := is.header.Get(name), was.header.Get(name); got != want {
						t.Errorf("%s is %q, was %q", name, got, want)
					}
				}
			}
			c.want(204, "DELETE", path, "")
		})
	}
}

// A repeated PUT is compared with the stream as it is by now, and its body is not
// looked at: it changes nothing.
func TestPutAgainChangesNothing(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const json = "Content-Type: application/json"
	c.create("/ds/trial/s", "application/json", "[1]")
	tail := c.append("/ds/trial/s", "application/json", "2")
	for _, body := range []string{"", "[1]", "[3]", "{"} {
		if a := c.want(200, "PUT", "/ds/trial/s", body, json); a.next() != tail {
			t.Errorf("%q: tail %s, was %s", body, a.next(), tail)
		}
	}
	c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true")
	c.want(409, "PUT", "/ds/trial/s", "", json)
	if a := c.want(200, "PUT", "/ds/trial/s", "", json, "Stream-Closed: true"); a.header.Get("Stream-Closed") != "true" || a.next() != tail {
		t.Errorf("closed since: %v", a.header)
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != "[1,2]" {
		t.Errorf("stream holds %s", got)
	}
}
