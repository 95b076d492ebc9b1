package api_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"firn/internal/api"
)

func TestBuckets(t *testing.T) {
	c, _ := connect(t, api.Options{})
	if a := c.want(201, "PUT", "/ds/agents", ""); a.header.Get("Location") != c.url+"/ds/agents" {
		t.Errorf("create: %v", a.header)
	}
	c.want(409, "PUT", "/ds/agents", "")
	c.create("/ds/agents/a", "text/plain", "")
	a := c.want(200, "GET", "/ds/agents", "")
	if strings.TrimSpace(a.body) != `{"bucket_id":"agents","streams":1}` || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s, %v", a.body, a.header)
	}
	if a := c.want(200, "HEAD", "/ds/agents", ""); a.body != "" {
		t.Errorf("HEAD has the body %q", a.body)
	}
	if code := c.want(409, "DELETE", "/ds/agents", "").code(); code != "bucket_not_empty" {
		t.Errorf("delete: %s", code)
	}
	c.want(204, "DELETE", "/ds/agents/a", "")
	c.want(204, "DELETE", "/ds/agents", "")
	for _, method := range []string{"GET", "HEAD", "DELETE"} {
		c.want(404, method, "/ds/agents", "")
	}
	c.want(404, "GET", "/ds/agents/streams", "")
}

func TestListing(t *testing.T) {
	c, _ := connect(t, api.Options{})
	empty := c.want(200, "GET", "/ds/trial/streams", "").body
	if strings.TrimSpace(empty) != `{"bucket_id":"trial","prefix":"","stream_count":0,"streams":[],"next_cursor":null,"has_more":false}` {
		t.Errorf("empty: %s", empty)
	}
	for _, id := range []string{"user-2", "user-1", "user-3", "a+b", "a%20b"} {
		c.create("/ds/trial/"+id, "text/plain", "x", "Stream-Closed: true")
	}
	a := c.want(200, "GET", "/ds/trial/%73treams?prefix=user-&limit=2", "").body
	times := regexp.MustCompile(`_ms":[1-9]\d{12}\b`)
	got := strings.TrimSpace(times.ReplaceAllString(a, `_ms":T`))
	want := `{"bucket_id":"trial","prefix":"user-","stream_count":5,"streams":[` +
		`{"stream_id":"user-1","status":"Closed","content_type":"text/plain","tail_offset":1,"created_at_ms":T,"last_write_at_ms":T},` +
		`{"stream_id":"user-2","status":"Closed","content_type":"text/plain","tail_offset":1,"created_at_ms":T,"last_write_at_ms":T}],` +
		`"next_cursor":"user-2","has_more":true}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for query, want := range map[string]string{
		"?prefix=user-&after=user-2": "user-3",
		"?after=user-15&limit=1":     "user-2",
		"?prefix=a%2B":               "a+b",
		"?prefix=a%20":               "a b",
		"?prefix=a+":                 "a b",
		"?after=zzz":                 "",
	} {
		var l struct {
			Streams []struct {
				ID string `json:"stream_id"`
			}
			NextCursor *string `json:"next_cursor"`
			HasMore    bool    `json:"has_more"`
		}
		if err := json.Unmarshal([]byte(c.want(200, "GET", "/ds/trial/streams"+query, "").body), &l); err != nil {
			t.Fatal(err)
		}
		if l.HasMore != (l.NextCursor != nil) {
			t.Errorf("%s: has_more %t, next_cursor %v", query, l.HasMore, l.NextCursor)
		}
		var ids []string
		for _, s := range l.Streams {
			ids = append(ids, s.ID)
		}
		if got := strings.Join(ids, ","); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
}

func TestBothSurfacesShareStreams(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/v1/stream/one", "text/plain", "x")
	c.create("/v1/stream/two/parts", "text/plain", "x")
	if a := c.want(200, "GET", "/ds/default/one", ""); a.body != "x" {
		t.Errorf("got %q", a.body)
	}
	if a := c.want(200, "GET", "/ds/default/streams", ""); strings.Contains(a.body, "parts") || !strings.Contains(a.body, `"stream_count":1`) {
		t.Errorf("listing: %s", a.body)
	}
	tail := c.create("/ds/trial/fork", "text/plain", "y", "Stream-Forked-From: /v1/stream/two/parts")
	if a := c.want(200, "GET", "/ds/trial/fork", ""); a.body != "xy" || a.next() != tail {
		t.Errorf("fork: %q, %v", a.body, a.header)
	}
	c.want(404, "PUT", "/ds/trial/fork2", "", "Stream-Forked-From: /v1/stream/missing")
}
