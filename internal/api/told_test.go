package api_test

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// told is what an answer has to say beside its status: "=" is that value, "" absent,
// "*" present with some value, "tail" the stream's tail.
type told map[string]string

// TestHeadersOfAnswers goes through every kind of answer and checks what is there and
// what is not.
func TestHeadersOfAnswers(t *testing.T) {
	c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond})
	const text = "Content-Type: text/plain"
	tail := c.create("/ds/trial/s", "text/plain; charset=utf-8", "hello", "Stream-TTL: 3600")
	c.create("/ds/trial/end", "text/plain", "hello", "Stream-Closed: true")
	c.create("/ds/trial/json", "application/json", "[1]")
	c.create("/ds/trial/cut", "text/plain", "hello")
	cut := c.append("/ds/trial/cut", "text/plain", "more")
	c.want(204, "PUT", "/ds/trial/cut/snapshot/"+cut, "S")
	c.create("/ds/trial/gone", "text/plain", "x")
	c.want(201, "PUT", "/ds/trial/fork", "", "Stream-Forked-From: /ds/trial/gone")
	c.want(204, "DELETE", "/ds/trial/gone", "")
	tag := c.want(200, "GET", "/ds/trial/s", "").header.Get("ETag")
	page := "private, max-age=60, stale-while-revalidate=300"

	for _, tt := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		told                     told
	}{
		{"create", "PUT", "/ds/trial/new", "abc", []string{text}, 201, told{
			"Location": c.url + "/ds/trial/new", "Content-Type": "text/plain", "Stream-Next-Offset": "tail", "Stream-Closed": "", "ETag": ""}},
		{"create again", "PUT", "/ds/trial/new", "abc", []string{text}, 200, told{
			"Location": "", "Content-Type": "text/plain", "Stream-Next-Offset": "tail", "Stream-Closed": ""}},
		{"create closed", "PUT", "/ds/trial/new-closed", "", []string{text, "Stream-Closed: true"}, 201, told{
			"Location": "*", "Stream-Next-Offset": "tail", "Stream-Closed": "true"}},
		{"create fork", "PUT", "/ds/trial/new-fork", "", []string{"Stream-Forked-From: /ds/trial/s"}, 201, told{
			"Location": "*", "Content-Type": "text/plain; charset=utf-8", "Stream-Next-Offset": "tail"}},
		{"create exists", "PUT", "/ds/trial/s", "", []string{"Content-Type: text/html"}, 409, told{"Location": "", "Stream-Next-Offset": ""}},
		{"append", "POST", "/ds/trial/new", "d", []string{text}, 204, told{
			"Stream-Next-Offset": "tail", "Content-Type": "", "Stream-Closed": "", "Producer-Epoch": "", "ETag": ""}},
		{"append closed", "POST", "/ds/trial/end", "d", []string{text}, 409, told{"Stream-Next-Offset": "tail", "Stream-Closed": "true"}},
		{"close again", "POST", "/ds/trial/end", "", []string{"Stream-Closed: true"}, 204, told{"Stream-Next-Offset": "tail", "Stream-Closed": "true"}},
		{"head", "HEAD", "/ds/trial/s", "", nil, 200, told{
			"Stream-Next-Offset": "tail", "Content-Type": "text/plain; charset=utf-8", "Stream-TTL": "3600", "Stream-Closed": "", "Stream-Up-To-Date": "", "ETag": ""}},
		{"head closed", "HEAD", "/ds/trial/end", "", nil, 200, told{"Stream-Next-Offset": "tail", "Stream-Closed": "true", "Stream-TTL": "", "Stream-Expires-At": ""}},
		{"head missing", "HEAD", "/ds/trial/missing", "", nil, 404, told{"Content-Type": "", "Stream-Next-Offset": ""}},
		{"read", "GET", "/ds/trial/s", "", nil, 200, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "Content-Type": "text/plain; charset=utf-8",
			"ETag": "*", "Cache-Control": page, "Stream-Closed": "", "Stream-Cursor": "", "Stream-SSE-Data-Encoding": ""}},
		{"read at the tail", "GET", "/ds/trial/s?offset=" + tail, "", nil, 200, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "ETag": "*", "Cache-Control": page}},
		{"read now", "GET", "/ds/trial/s?offset=now", "", nil, 200, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "Content-Type": "text/plain; charset=utf-8", "ETag": ""}},
		{"read of the end", "GET", "/ds/trial/end", "", nil, 200, told{"Stream-Closed": "true", "Stream-Up-To-Date": "true", "Stream-Next-Offset": "tail", "Cache-Control": page}},
		{"read now of the end", "GET", "/ds/trial/end?offset=now", "", nil, 200, told{"Stream-Closed": "true", "Stream-Up-To-Date": "true", "ETag": ""}},
		{"read unchanged", "GET", "/ds/trial/s", "", []string{"If-None-Match: " + tag}, 304, told{
			"ETag": tag, "Cache-Control": page, "Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true"}},
		{"read of the trimmed", "GET", "/ds/trial/cut", "", nil, 410, told{"Stream-Earliest-Offset": cut, "ETag": "", "Stream-Next-Offset": ""}},
		{"read of the deleted", "GET", "/ds/trial/gone", "", nil, 410, told{"Stream-Earliest-Offset": "", "ETag": ""}},
		{"read malformed", "GET", "/ds/trial/s?offset=x", "", nil, 400, told{"ETag": "", "Stream-Next-Offset": ""}},
		{"read missing", "GET", "/ds/trial/missing", "", nil, 404, told{"ETag": "", "Stream-Next-Offset": ""}},
		{"long-poll with data", "GET", "/ds/trial/s?live=long-poll&offset=-1", "", nil, 200, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "Stream-Cursor": "*", "Content-Type": "text/plain; charset=utf-8"}},
		{"long-poll without", "GET", "/ds/trial/s?live=long-poll&offset=now", "", nil, 204, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "Stream-Cursor": "*", "Content-Type": "", "ETag": ""}},
		{"long-poll at the end", "GET", "/ds/trial/end?live=long-poll&offset=now", "", nil, 204, told{
			"Stream-Next-Offset": "tail", "Stream-Up-To-Date": "true", "Stream-Closed": "true"}},
		{"events", "GET", "/ds/trial/end?live=sse&offset=-1", "", nil, 200, told{
			"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-store, no-transform", "Content-Length": "",
			"Stream-SSE-Data-Encoding": "", "ETag": "", "Stream-Next-Offset": "", "Stream-Cursor": "", "Content-Encoding": ""}},
		{"delete", "DELETE", "/ds/trial/json", "", nil, 204, told{"Stream-Next-Offset": "", "Content-Type": ""}},
		{"delete missing", "DELETE", "/ds/trial/json", "", nil, 404, nil},
		{"no such method", "PATCH", "/ds/trial/s", "", nil, 405, told{"Allow": "*"}},
		{"no such resource", "GET", "/nowhere", "", nil, 404, nil},
		{"compressed", "POST", "/ds/trial/s", "x", []string{text, "Content-Encoding: zstd"}, 415, told{"Accept-Encoding": "*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := c.want(tt.status, tt.method, tt.path, tt.body, append(tt.header, "Origin: https://app.example")...)
			want := told{
				"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "cross-origin",
				"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "*", "Access-Control-Allow-Credentials": "",
				"Cache-Control": "no-store",
			}
			maps.Copy(want, tt.told)
			if tt.status >= 400 && tt.method != "HEAD" {
				want["Content-Type"] = "application/problem+json"
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Stream-Fork") {
					t.Errorf("%s is there", name) // no answer tells of forks (B§4.2)
				}
				seen := strings.HasPrefix(name, "Stream-") || strings.HasPrefix(name, "Producer-") || slices.Contains([]string{"Etag", "Location", "Retry-After"}, name)
				if exposed := strings.ToLower(a.header.Get("Access-Control-Expose-Headers")); seen && !slices.Contains(strings.Split(exposed, ", "), strings.ToLower(name)) {
					t.Errorf("%s is not for scripts to see", name)
				}
			}
			for name, want := range want {
				if want == "tail" {
					path, _, _ := strings.Cut(tt.path, "?")
					want = c.want(200, "HEAD", path, "").next()
				}
				got := a.header.Values(name)
				switch {
				case want == "" && len(got) > 0, want == "*" && (len(got) != 1 || got[0] == ""), want != "" && want != "*" && !slices.Equal(got, []string{want}):
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
		})
	}
}

var emitted = regexp.MustCompile(`^[0-9]{16}_[0-9]{16}$`)

// TestEveryOffsetResumes takes the offset of each kind of answer and reads on from it.
func TestEveryOffsetResumes(t *testing.T) {
	for _, kind := range []string{"text/plain", "application/json", "application/octet-stream"} {
		c, _ := connect(t, api.Options{LongPollTimeout: time.Millisecond})
		const path = "/ds/trial/s"
		offsets := map[string]string{"create": c.create(path, kind, "")}
		part := func(n string) string { return `"` + n + `"` }
		want := ""
		add := func(offset string) {
			t.Helper()
			if !emitted.MatchString(offset) {
				t.Errorf("%s: offset %q", kind, offset)
			}
			e := c.subscribe(path + "?live=sse&offset=" + offset)
			c.append(path, kind, part("next"))
			for _, live := range []string{"", "&live=long-poll"} {
				got := c.want(200, "GET", path+"?offset="+offset+live, "").body
				if want = part("next"); kind == "application/json" {
					want = "[" + want + "]"
				}
				if got != want {
					t.Errorf("%s: from %s%s: %q", kind, offset, live, got)
				}
			}
			if at := e.control(); at.StreamNextOffset != offset {
				t.Errorf("%s: events from %s begin at %+v", kind, offset, at)
			}
			if _, at := e.data(); at.StreamNextOffset != c.want(200, "HEAD", path, "").next() {
				t.Errorf("%s: event at %+v", kind, at)
			}
		}
		add(offsets["create"])
		for _, from := range []func() string{
			func() string { return c.append(path, kind, part("x")) },
			func() string { return c.want(200, "PUT", path, "", "Content-Type: "+kind).next() },
			func() string { return c.want(200, "HEAD", path, "").next() },
			func() string { return c.want(200, "GET", path, "").next() },
			func() string { return c.want(200, "GET", path+"?offset=now", "").next() },
			func() string { return c.want(200, "GET", path+"?live=long-poll&offset=-1", "").next() },
			func() string { return c.want(204, "GET", path+"?live=long-poll&offset=now", "").next() },
			func() string { return c.subscribe(path + "?live=sse&offset=now").control().StreamNextOffset },
			func() string { _, at := c.subscribe(path + "?live=sse&offset=-1").data(); return at.StreamNextOffset },
		} {
			add(from())
		}
		end := c.want(204, "POST", path, "", "Stream-Closed: true").next()
		if refused := c.want(409, "POST", path, part("x"), "Content-Type: "+kind).next(); refused != end || !emitted.MatchString(end) {
			t.Errorf("%s: closed at %s, refused with %s", kind, end, refused)
		}
	}
}

// TestOffsetNowOverEvents: nothing that was there is sent, everything later is.
func TestOffsetNowOverEvents(t *testing.T) {
	c, _ := connect(t, api.Options{})
	for _, kind := range []string{"text/plain", "application/json"} {
		path := "/ds/trial/" + strings.ReplaceAll(kind, "/", "-")
		for _, old := range []string{"", "1"} {
			tail := c.create(path+old, kind, old)
			e := c.subscribe(path + old + "?live=sse&offset=now")
			if at := e.control(); at.StreamNextOffset != tail || !at.UpToDate || at.StreamCursor == nil || at.StreamClosed {
				t.Errorf("%s, %q: first %+v, tail %s", kind, old, at, tail)
			}
			next := c.append(path+old, kind, "2")
			if got, at := e.data(); strings.Trim(got, "[]") != "2" || at.StreamNextOffset != next {
				t.Errorf("%s, %q: got %q, %+v", kind, old, got, at)
			}
		}
	}
}

// TestRepeatedOffset: two good offsets are refused too, equal ones as well.
func TestRepeatedOffset(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "hello")
	for _, query := range []string{"offset=-1&offset=-1", "offset=-1&offset=" + tail, "offset=" + tail + "&x=1&offset=" + tail, "offset=now&offset=-1", "offset=-1&%6Fffset=-1"} {
		for _, live := range []string{"", "&live=long-poll", "&live=sse"} {
			if got := c.want(400, "GET", "/ds/trial/s?"+query+live, "").code(); got != "query_repeated" {
				t.Errorf("%s%s: %s", query, live, got)
			}
		}
	}
}

// TestMissingStreamComesFirst: whatever else is wrong with a read, a stream that does
// not exist is 404.
func TestMissingStreamComesFirst(t *testing.T) {
	c, _ := connect(t, api.Options{})
	for _, query := range []string{
		"offset=", "offset=x", "offset=0,1", "offset=-1%0A", "offset=-1&offset=-1", "offset=%zz", "live=sse", "live=long-poll",
		"offset=-1&live=x", "offset=9999999999999999_9999999999999999", "offset=now&live=sse", "offset=now&live=long-poll&cursor=99999999999999999999",
	} {
		c.want(404, "GET", "/ds/trial/missing?"+query, "")
		c.want(404, "GET", "/ds/missing/missing?"+query, "")
		c.want(404, "GET", "/v1/stream/missing/deep?"+query, "")
	}
}

// TestEventsBeginAtOnce: the header and the first control event come before there is
// anything to tell, on a connection of each kind.
func TestEventsBeginAtOnce(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "")
	conn := c.dial("GET /ds/trial/s?offset=-1&live=sse HTTP/1.1\r\nHost: x\r\n\r\n")
	res := response(t, bufio.NewReader(conn))
	if res.ContentLength != -1 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("got %v, %d bytes", res.Header, res.ContentLength)
	}
	for _, tr := range []http.RoundTripper{c.http.Transport, http2(t)} {
		c.http = &http.Client{Transport: tr}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		res := c.start(ctx, "GET", "/ds/trial/s?offset=-1&live=sse", "")
		e := events{t: t, lines: bufio.NewReader(res.Body)}
		if at := e.control(); at.StreamNextOffset != tail {
			t.Errorf("%s: got %+v", res.Proto, at)
		}
		cancel()
		res.Body.Close()
	}
}
