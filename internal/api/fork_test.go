package api_test

import (
	"testing"

	"firn/internal/api"
)

func TestForksAreRepeatable(t *testing.T) {
	c, _ := connect(t, api.Options{})
	middle := c.create("/ds/trial/s", "application/json", "[1,2]")
	tail := c.append("/ds/trial/s", "application/json", "[3]")
	fork := func(status int, header ...string) answer {
		t.Helper()
		return c.want(status, "PUT", "/ds/trial/f", "", append(header, "Stream-Forked-From: /ds/trial/s")...)
	}
	fork(400, "Stream-Fork-Offset: "+tail[:17]+"0000000000000007")
	if a := fork(409, "Content-Type: text/plain", "Stream-Fork-Offset: "+middle); a.code() != "content_type_mismatch" {
		t.Errorf("other type: %s", a.body)
	}
	c.want(404, "HEAD", "/ds/trial/f", "")
	for i, status := range []int{201, 200} {
		a := fork(status, "Content-Type: application/json", "Stream-Fork-Offset: "+middle)
		if a.next() != middle || a.header.Get("Content-Type") != "application/json" {
			t.Errorf("fork %d: %v", i, a.header)
		}
	}
	fork(409, "Stream-Fork-Offset: "+tail)
	fork(409, "Stream-Fork-Offset: "+middle, "Stream-TTL: 60")
	c.want(409, "PUT", "/ds/trial/f", "", "Content-Type: application/json")
	c.want(409, "PUT", "/ds/trial/s", "", "Stream-Forked-From: /ds/trial/f")
}

func TestForkHasNoStreamSeqOfItsSource(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", "")
	c.append("/ds/trial/s", "text/plain", "1", "Stream-Seq: m")
	c.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: /ds/trial/s")
	c.append("/ds/trial/f", "text/plain", "2", "Stream-Seq: a")
	c.want(409, "POST", "/ds/trial/f", "x", "Content-Type: text/plain", "Stream-Seq: a")
	c.want(409, "POST", "/ds/trial/s", "x", "Content-Type: text/plain", "Stream-Seq: b")
	if got := c.want(200, "GET", "/ds/trial/f", "").body; got != "12" {
		t.Errorf("the fork has %q", got)
	}
}

func TestForkOfJSONIsReadAsOneArray(t *testing.T) {
	c, _ := connect(t, api.Options{})
	middle := c.create("/ds/trial/s", "application/json", "[1,[2]]")
	c.append("/ds/trial/s", "application/json", "[8]")
	c.want(201, "PUT", "/ds/trial/f", `[{"a":3}]`, "Stream-Forked-From: /ds/trial/s", "Stream-Fork-Offset: "+middle)
	c.append("/ds/trial/f", "application/json", "4")
	if got := c.want(200, "GET", "/ds/trial/f", "").body; got != `[1,[2],{"a":3},4]` {
		t.Errorf("read: %s", got)
	}
	if got, _ := c.subscribe("/ds/trial/f?live=sse&offset=-1").data(); got != `[1,[2],{"a":3},4]` {
		t.Errorf("events: %s", got)
	}
	if got := c.want(200, "GET", "/ds/trial/f?live=long-poll&offset=-1", "").body; got != `[1,[2],{"a":3},4]` {
		t.Errorf("long-poll: %s", got)
	}
}

// A fork's readers get inherited bytes at once and after them what the fork itself is
// given; nothing that its source is given later.
func TestLiveReadersOfAFork(t *testing.T) {
	c, _ := connect(t, api.Options{})
	middle := c.create("/ds/trial/s", "text/plain", "inherited")
	c.append("/ds/trial/s", "text/plain", "not")
	tail := c.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: /ds/trial/s", "Stream-Fork-Offset: "+middle).next()
	poll := "/ds/trial/f?live=long-poll&offset="
	if a := c.want(200, "GET", poll+"-1", ""); a.body != "inherited" || a.next() != tail || a.header.Get("Stream-Up-To-Date") != "true" {
		t.Errorf("long-poll of inherited bytes: %q, %v", a.body, a.header)
	}
	old, end := c.subscribe("/ds/trial/f?live=sse&offset=-1"), c.subscribe("/ds/trial/f?live=sse&offset="+tail)
	if got, at := old.data(); got != "inherited" || at.StreamNextOffset != tail || !at.UpToDate {
		t.Errorf("events of inherited bytes: %q, %+v", got, at)
	}
	end.control()
	waiting := c.await(poll + tail)
	c.append("/ds/trial/s", "text/plain", "of the source")
	c.want(204, "POST", "/ds/trial/s", "", "Stream-Closed: true")
	select {
	case a := <-waiting:
		t.Errorf("the source has woken a reader of the fork: %d %q", a.status, a.body)
	default:
	}
	next := c.append("/ds/trial/f", "text/plain", "own")
	if a := <-waiting; a.status != 200 || a.body != "own" || a.next() != next || a.header.Get("Stream-Closed") != "" {
		t.Errorf("long-poll at the tail: %d %q, %v", a.status, a.body, a.header)
	}
	for name, e := range map[string]*events{"from the beginning": old, "from the tail": end} {
		if got, at := e.data(); got != "own" || at.StreamNextOffset != next || at.StreamClosed {
			t.Errorf("events %s: %q, %+v", name, got, at)
		}
	}
}

// A deleted stream that a fork needs is gone for everybody else, and its name is not
// free before the fork is gone as well.
func TestSoftDeletedStream(t *testing.T) {
	c, _ := connect(t, api.Options{})
	tail := c.create("/ds/trial/s", "text/plain", "inherited")
	c.want(201, "PUT", "/ds/trial/f", "", "Stream-Forked-From: /ds/trial/s")
	c.want(204, "DELETE", "/ds/trial/s", "")
	const text = "Content-Type: text/plain"
	for range 2 {
		for _, r := range []struct {
			status              int
			method, query, body string
			header              []string
		}{
			{410, "GET", "", "", nil},
			{410, "GET", "?offset=now", "", nil},
			{410, "GET", "?live=long-poll&offset=" + tail, "", nil},
			{410, "GET", "?live=sse&offset=" + tail, "", nil},
			{410, "HEAD", "", "", nil},
			{410, "POST", "", "x", []string{text}},
			{410, "POST", "", "", []string{"Stream-Closed: true"}},
			{410, "DELETE", "", "", nil},
			{409, "PUT", "", "", []string{text}},
			{409, "PUT", "", "", []string{"Stream-Forked-From: /ds/trial/f"}},
		} {
			a := c.want(r.status, r.method, "/ds/trial/s"+r.query, r.body, r.header...)
			if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Stream-Earliest-Offset") != "" {
				t.Errorf("%s %s: %v", r.method, r.query, a.header)
			}
		}
		c.want(409, "PUT", "/ds/trial/g", "", "Stream-Forked-From: /ds/trial/s")
	}
	if got := c.want(200, "GET", "/ds/trial/f", "").body; got != "inherited" {
		t.Errorf("the fork has %q", got)
	}
	c.want(204, "DELETE", "/ds/trial/f", "")
	c.want(404, "DELETE", "/ds/trial/s", "")
	c.create("/ds/trial/s", "application/json", "[1]")
}
