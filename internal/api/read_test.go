package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

func TestAppendAnswers(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const s, text = "/v1/stream/a/b", "Content-Type: text/plain"
	producer := func(epoch, seq string) []string {
		return []string{text, "Producer-Id: p", "Producer-Epoch: " + epoch, "Producer-Seq: " + seq}
	}
	c.create(s, "text/plain", "")
	tests := []struct {
		name   string
		body   string
		header []string
		status int
		want   map[string]string
	}{
		{"plain", "one", []string{text}, 204, nil},
		{"producer", "two", producer("0", "0"), 200, map[string]string{"Producer-Epoch": "0", "Producer-Seq": "0"}},
		{"producer again", "xx", producer("0", "0"), 204, map[string]string{"Producer-Epoch": "0", "Producer-Seq": "0"}},
		{"producer gap", "xx", producer("0", "2"), 409, map[string]string{"Producer-Expected-Seq": "1", "Producer-Received-Seq": "2"}},
		{"producer epoch", "tri", producer("3", "0"), 200, map[string]string{"Producer-Epoch": "3", "Producer-Seq": "0"}},
		{"producer stale", "xx", producer("1", "0"), 403, map[string]string{"Producer-Epoch": "3"}},
		{"other type", "{}", []string{"Content-Type: application/json"}, 409, nil},
		{"false closes nothing", "four", []string{text, "Stream-Closed: false"}, 204, map[string]string{"Stream-Closed": ""}},
		{"producer closes", "", append(producer("3", "1"), "Stream-Closed: TRUE"), 204, map[string]string{"Stream-Closed": "true", "Producer-Seq": "1"}},
		{"closed", "xx", []string{text}, 409, map[string]string{"Stream-Closed": "true", "Stream-Next-Offset": "tail"}},
		{"close again", "", []string{"Stream-Closed: true"}, 204, map[string]string{"Stream-Closed": "true", "Stream-Next-Offset": "tail"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := c.do("POST", s, tt.body, tt.header...)
			if a.status != tt.status {
				t.Fatalf("got %d %s, want %d", a.status, a.body, tt.status)
			}
			if a.status < 300 && a.next() == "" {
				t.Error("no offset")
			}
			for name, want := range tt.want {
				if want == "tail" {
					want = c.want(200, "HEAD", s, "").next()
				}
				if got := a.header.Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
	if got := c.want(200, "GET", s, "").body; got != "onetwotrifour" {
		t.Errorf("stream holds %q", got)
	}
}

func TestCreateAnswers(t *testing.T) {
	c, _ := connect(t, api.Options{})
	a := c.want(201, "PUT", "/ds/trial/a%20b+c", "x", "Content-Type: text/plain; charset=utf-8", "Stream-TTL: 60", "Stream-Closed: true")
	for name, want := range map[string]string{
		"Location":      c.url + "/ds/trial/a%20b+c",
		"Content-Type":  "text/plain; charset=utf-8",
		"Stream-Closed": "true",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	again := c.want(200, "PUT", "/ds/trial/a%20b%2Bc", "x", "Content-Type: TEXT/plain", "Stream-TTL: 60", "Stream-Closed: true")
	if again.next() != a.next() || again.header.Get("Location") != "" {
		t.Errorf("again: got %v", again.header)
	}
	c.want(409, "PUT", "/ds/trial/a%20b+c", "x", "Content-Type: text/plain", "Stream-TTL: 61", "Stream-Closed: true")
	c.want(404, "PUT", "/ds/absent/s", "x")
	if got := c.want(200, "HEAD", "/ds/trial/a%20b+c", "").header.Get("Stream-TTL"); got != "60" {
		t.Errorf("TTL is %q", got)
	}
}

func TestOffsets(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "hello")
	other := strings.Replace(tail, "_", "9_", 1)[1:]
	bad := []string{"", "0,1", "0%201", "-2", "--1", "NOW", "%00", "+5", "1e3", "0x10", strings.Repeat("1", 300),
		"-1%0A", "now%0D%0A", "..", "a/b", tail[1:], tail + "0", other, tail[:17] + "0000000000000006", "9999999999999999_9999999999999999"}
	for _, offset := range bad {
		for _, live := range []string{"", "&live=long-poll", "&live=sse"} {
			if a := c.do("GET", "/ds/trial/s?offset="+offset+live, ""); a.status != 400 {
				t.Errorf("offset=%s%s: got %d", offset, live, a.status)
			}
		}
	}
	tests := map[string]string{
		"":                     "hello",
		"?offset=-1":           "hello",
		"?unknown=1&offset=-1": "hello",
		"?offset=" + tail[:17] + "0000000000000002": "llo",
		"?offset=" + tail: "",
		"?offset=now":     "",
		"?offset=0000000000000000_0000000000000000": "hello",
	}
	for query, want := range tests {
		a := c.want(200, "GET", "/ds/trial/s"+query, "")
		if a.body != want || a.next() != tail || a.header.Get("Stream-Up-To-Date") != "true" {
			t.Errorf("%s: got %q, %v", query, a.body, a.header)
		}
	}
	for query, code := range map[string]string{
		"?offset=-1&offset=-1": "query_repeated",
		"?offset=%zz":          "query_malformed",
		"?live=sse":            "offset_required",
		"?live=long-poll":      "offset_required",
		"?offset=-1&live=yes":  "live_invalid",
		"?offset=-1&live=":     "live_invalid",
		"?offset=-1&live=sse&cursor=99999999999999999999": "cursor_invalid",
	} {
		if got := c.want(400, "GET", "/ds/trial/s"+query, "").code(); got != code {
			t.Errorf("%s: got %s, want %s", query, got, code)
		}
		c.want(404, "GET", "/ds/trial/missing"+query, "")
	}
}

// A page may keep its range while the stream grows beyond it. A cache that was told
// 304 then would keep saying that it is up to date.
func TestTagTellsWhetherThePageIsUpToDate(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "application/json", `"`+strings.Repeat("a", 1<<20)+`"`)
	first := c.want(200, "GET", "/ds/trial/s", "")
	c.want(204, "POST", "/ds/trial/s", `"`+strings.Repeat("b", 7<<19)+`"`, "Content-Type: application/json")
	again := c.want(200, "GET", "/ds/trial/s", "", "If-None-Match: "+first.header.Get("ETag"))
	if again.header.Get("Stream-Next-Offset") != first.header.Get("Stream-Next-Offset") || again.header.Get("Stream-Up-To-Date") != "" {
		t.Errorf("the page of one message is %v, was %v", again.header, first.header)
	}
}

func TestConditionalReads(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "hello")
	first := c.want(200, "GET", "/ds/trial/s", "")
	end := c.want(200, "GET", "/ds/trial/s?offset="+tail, "")
	tag := first.header.Get("ETag")
	if tag == "" || tag == end.header.Get("ETag") {
		t.Fatalf("tags %q and %q", tag, end.header.Get("ETag"))
	}
	same := c.want(304, "GET", "/ds/trial/s", "", `If-None-Match: "x", W/`+tag)
	for _, name := range []string{"ETag", "Cache-Control", "Stream-Next-Offset", "Stream-Up-To-Date"} {
		if got, want := same.header.Get(name), first.header.Get(name); got != want {
			t.Errorf("304: %s is %q, was %q", name, got, want)
		}
	}
	if same.body != "" {
		t.Errorf("304 has the body %q", same.body)
	}

	c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true")
	for path, tag := range map[string]string{"/ds/trial/s": tag, "/ds/trial/s?offset=" + tail: end.header.Get("ETag")} {
		a := c.want(200, "GET", path, "", "If-None-Match: "+tag)
		if a.header.Get("Stream-Closed") != "true" || a.header.Get("ETag") == tag {
			t.Errorf("%s after the close: %v", path, a.header)
		}
	}
	c.want(304, "GET", "/ds/trial/s", "", "If-None-Match: *")
	tag = c.want(200, "GET", "/ds/trial/s", "").header.Get("ETag")

	c.want(204, "DELETE", "/ds/trial/s", "")
	c.create("/ds/trial/s", "text/plain", "HELLO", "Stream-Closed: true")
	if a := c.want(200, "GET", "/ds/trial/s", "", "If-None-Match: "+tag); a.body != "HELLO" {
		t.Errorf("next life: got %q", a.body)
	}
}

func TestCacheDirectives(t *testing.T) {
	for name, tt := range map[string]struct {
		o    api.Options
		read string
		blob string
	}{
		"private": {api.Options{}, "private, max-age=60, stale-while-revalidate=300", "private, no-cache"},
		"public":  {api.Options{CachePublic: true}, "public, max-age=60, stale-while-revalidate=300", "public, no-cache"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := connect(t, tt.o)
			tail := c.create("/ds/trial/s", "application/json", "[1,2]")
			c.want(204, "PUT", "/ds/trial/s/snapshot/"+tail, "S")
			for path, want := range map[string]string{
				"/ds/trial/s?offset=" + tail:   tt.read,
				"/ds/trial/s?offset=now":       "no-store",
				"/ds/trial/s/snapshot":         "no-store",
				"/ds/trial/s/snapshot/" + tail: tt.blob,
				"/ds/trial/s/bootstrap":        "no-store",
				"/ds/trial":                    "no-store",
				"/ds/trial/streams":            "no-store",
				"/ds/trial/s":                  "no-store", // 410
				"/ds/trial/missing":            "no-store",
			} {
				if got := c.do("GET", path, "").header.Get("Cache-Control"); got != want {
					t.Errorf("%s: got %q, want %q", path, got, want)
				}
			}
			if got := c.do("HEAD", "/ds/trial/s", "").header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("HEAD: got %q", got)
			}
		})
	}
}

func TestJSONReads(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "Application/JSON; charset=UTF-8", "[]")
	a := c.want(200, "GET", "/ds/trial/s", "")
	if a.body != "[]" || a.header.Get("Content-Type") != "Application/JSON; charset=UTF-8" {
		t.Errorf("empty: got %q, %v", a.body, a.header)
	}
	c.append("/ds/trial/s", "application/json", ` [ {"b":1e400, "a":"<&>"} , [1, 2] ] `)
	if a := c.want(200, "GET", "/ds/trial/s", ""); a.body != `[{"b":1e400,"a":"<&>"},[1,2]]` || a.header.Get("Server-Timing") != `tier;desc="hot"` {
		t.Errorf("got %q, %v", a.body, a.header)
	}
	if a := c.want(200, "GET", "/ds/trial/s?offset=now", ""); a.body != "[]" || a.header.Get("ETag") != "" {
		t.Errorf("now: got %q, %v", a.body, a.header)
	}
}

func TestTrimmedReads(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", "hello")
	at := c.append("/ds/trial/s", "text/plain", " world")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, "S")
	for _, query := range []string{"", "?offset=-1", "?offset=-1&live=long-poll", "?offset=-1&live=sse"} {
		a := c.want(410, "GET", "/ds/trial/s"+query, "")
		if a.code() != "offset_trimmed" || a.header.Get("Stream-Earliest-Offset") != at {
			t.Errorf("%s: got %s, %v", query, a.body, a.header)
		}
	}
}
