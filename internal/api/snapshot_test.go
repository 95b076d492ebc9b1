package api_test

import (
	"io"
	"mime"
	"mime/multipart"
	"strconv"
	"strings"
	"testing"

	"firn/internal/api"
)

func TestSnapshots(t *testing.T) {
	c, _ := connect(t, api.Options{SnapshotBytes: 10})
	c.create("/ds/trial/s", "text/plain", "one")
	at := c.append("/ds/trial/s", "text/plain", "two")
	c.want(404, "GET", "/ds/trial/s/snapshot", "")
	c.want(404, "GET", "/ds/trial/s/snapshot/"+at, "")

	const blob = "0123456789"
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, blob, "Content-Type: text/x-state; v=1")
	if a := c.want(200, "HEAD", "/ds/trial/s", ""); a.header.Get("Stream-Snapshot-Offset") != at {
		t.Errorf("HEAD of the stream: %v", a.header)
	}
	if a := c.want(307, "GET", "/ds/trial/s/snapshot", ""); a.header.Get("Location") != c.url+"/ds/trial/s/snapshot/"+at {
		t.Errorf("latest: %v", a.header)
	}
	for _, method := range []string{"GET", "HEAD"} {
		a := c.want(200, method, "/ds/trial/s/snapshot/"+strings.Replace(at, "_", "%5F", 1), "")
		for name, want := range map[string]string{
			"Content-Type":           "text/x-state; v=1",
			"Content-Length":         strconv.Itoa(len(blob)),
			"Stream-Snapshot-Offset": at,
			"Stream-Next-Offset":     at,
			"Stream-Up-To-Date":      "true",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
		if want := map[string]string{"GET": blob, "HEAD": ""}[method]; a.body != want {
			t.Errorf("%s: got %q", method, a.body)
		}
	}
	tag := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, "").header.Get("ETag")
	c.want(304, "GET", "/ds/trial/s/snapshot/"+at, "", "If-None-Match: "+tag)
	c.append("/ds/trial/s", "text/plain", "three")
	if a := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, "", "If-None-Match: "+tag); a.header.Get("Stream-Up-To-Date") != "" {
		t.Errorf("behind the tail: %v", a.header)
	}

	if code := c.want(413, "PUT", "/ds/trial/s/snapshot/"+at, blob+"x").code(); code != "snapshot_too_large" {
		t.Errorf("too large: %s", code)
	}
	c.want(415, "PUT", "/ds/trial/s/snapshot/"+at, "x", "Content-Encoding: gzip")
	for _, offset := range []string{"-1", "now", "bad,offset"} {
		c.want(400, "PUT", "/ds/trial/s/snapshot/"+offset, "x")
		c.want(404, "PUT", "/ds/trial/missing/snapshot/"+offset, "x")
	}
	c.want(409, "DELETE", "/ds/trial/s/snapshot/"+at, "")
	if a := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, ""); a.body != blob {
		t.Errorf("after all that: %q", a.body)
	}
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, "")
	if a := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, ""); a.body != "" || a.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("replaced by nothing: %q, %v", a.body, a.header)
	}
}

func TestBootstrap(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "application/json", `[1]`)
	at := c.append("/ds/trial/s", "application/json", `[2]`)
	tail := c.append("/ds/trial/s", "application/json", `[{"a":3},[4]]`)

	parts := func(want ...string) {
		t.Helper()
		a := c.want(200, "GET", "/ds/trial/s/bootstrap?offset=ignored", "")
		kind, params, err := mime.ParseMediaType(a.header.Get("Content-Type"))
		if err != nil || kind != "multipart/mixed" || !strings.HasPrefix(a.body, "--"+params["boundary"]+"\r\n") {
			t.Fatalf("content type %q", a.header.Get("Content-Type"))
		}
		if a.next() != tail || a.header.Get("Stream-Up-To-Date") != "true" {
			t.Errorf("got %v", a.header)
		}
		head := c.want(200, "HEAD", "/ds/trial/s/bootstrap", "")
		for _, name := range []string{"Stream-Snapshot-Offset", "Stream-Next-Offset", "Stream-Up-To-Date", "Stream-Closed"} {
			if head.header.Get(name) != a.header.Get(name) {
				t.Errorf("HEAD: %s is %q, not %q", name, head.header.Get(name), a.header.Get(name))
			}
		}
		r := multipart.NewReader(strings.NewReader(a.body), params["boundary"])
		var got []string
		for {
			p, err := r.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(p)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, p.Header.Get("Content-Type")+" "+string(body))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	parts("application/octet-stream ", "application/json 1", "application/json 2", `application/json {"a":3}`, "application/json [4]")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, "S", "Content-Type: text/plain")
	parts("text/plain S", `application/json {"a":3}`, "application/json [4]")

	for _, query := range []string{"live=sse", "live=long-poll", "live=", "live=x"} {
		if code := c.want(400, "GET", "/ds/trial/s/bootstrap?"+query, "").code(); code != "live_not_supported" {
			t.Errorf("%s: %s", query, code)
		}
	}
	c.want(404, "GET", "/ds/trial/missing/bootstrap", "")
}
