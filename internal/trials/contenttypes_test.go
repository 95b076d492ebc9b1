package trials_test

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestContentTypes(t *testing.T) {
	t.Run("CT-c45", typesMatchWithoutCaseAndParameters)
	t.Run("CT-ae1", onlyOneTypeIsJSON)
	t.Run("CT-534", oddTypes)
}

func typesMatchWithoutCaseAndParameters(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "Application/JSON; Charset=UTF-8", "")
	s.append(path, "application/json", `[{"a":1}]`)
	s.append(path, "application/json;charset=utf-8", `{"a":2}`)
	s.want(409, "POST", path, "x", "Content-Type: text/plain")
	s.holds(path, `[{"a":1},{"a":2}]`)
	for _, again := range []string{"application/json", "APPLICATION/JSON; charset=utf-8", "application/json;charset=latin1"} {
		s.want(200, "PUT", path, "", "Content-Type: "+again)
	}
	s.want(409, "PUT", path, "", "Content-Type: text/plain")
	if got := s.want(200, "HEAD", path, "").header.Get("Content-Type"); got != "Application/JSON; Charset=UTF-8" {
		t.Errorf("type is %q", got)
	}
}

func onlyOneTypeIsJSON(t *testing.T) {
	s := serve(t)
	const body = "[1, [2]]"
	types := []string{"application/vnd.api+json", "application/ndjson", "text/json", "application/ld+json", "application/jsonx"}
	path := func(i int) string { return "/ds/trial/s" + string(rune('a'+i)) }
	for i, kind := range types {
		tail := s.create(path(i), kind, "")
		s.append(path(i), kind, body)
		s.want(201, "PUT", path(i)+"-fork", "", "Stream-Forked-From: "+path(i), "Stream-Fork-Offset: "+tail, "Stream-Fork-Sub-Offset: 3")
	}
	for restarts := range 2 {
		for i, kind := range types {
			a := s.want(200, "GET", path(i), "")
			if a.body != body || a.header.Get("Content-Type") != kind {
				t.Errorf("%s: %q, %v", kind, a.body, a.header)
			}
			e := s.subscribe(path(i) + "?offset=-1&live=sse")
			data, _ := e.must()
			want := body
			if !strings.HasPrefix(kind, "text/") {
				want = base64.StdEncoding.EncodeToString([]byte(body))
			}
			if base64d := e.header.Get("Stream-SSE-Data-Encoding") == "base64"; data != want || base64d == strings.HasPrefix(kind, "text/") {
				t.Errorf("%s: event %q, base64 %t", kind, data, base64d)
			}
			if got := s.bootstrap(path(i) + "/bootstrap"); len(got.parts) != 2 || got.parts[1] != body || got.types[1] != kind {
				t.Errorf("%s: bootstrap %q of %q", kind, got.parts, got.types)
			}
			if got := s.read(path(i)+"-fork", "-1"); got != body[:3] {
				t.Errorf("%s: fork after 3 bytes has %q", kind, got)
			}
		}
		if restarts == 0 {
			s.restart()
		}
	}
}

func oddTypes(t *testing.T) {
	s := serve(t)
	s.create("/ds/trial/s", "text/plain", "")
	for _, kind := range []string{"", "foo", "text/", "/plain", "a/b; c", "a b/c", "text/plain; charset=", strings.Repeat("x", 5<<10) + "/y", "text/pl\xe4in", "text/plain, text/html"} {
		for method, path := range map[string]string{"PUT": "/ds/trial/new", "POST": "/ds/trial/s"} {
			got := s.raw(method + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: " + kind + "\r\nContent-Length: 1\r\n\r\nx")
			if len(got) != 1 || got[0].status != 400 || got[0].header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %.20q: got %+v", method, kind, got)
			}
		}
	}
	s.want(404, "GET", "/ds/trial/new", "")
	if a := s.want(400, "POST", "/ds/trial/s", "x"); a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("no type: %v", a.header)
	}
	s.create("/ds/trial/html", "text/html", "<script>")
	if a := s.want(200, "GET", "/ds/trial/html", ""); a.header.Get("Content-Type") != "text/html" || a.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("html: %v", a.header)
	}
}
