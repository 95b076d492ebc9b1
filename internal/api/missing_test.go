package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

// Every operation on a stream of a bucket that does not exist is 404, and none makes the
// bucket (X§1.2, X§1.6).
func TestMissingBucket(t *testing.T) {
	c, _ := connect(t, api.Options{})
	at := c.create("/ds/trial/s", "text/plain", "x")
	const asText = "Content-Type: text/plain"
	for _, tt := range []struct {
		method, path, body string
		header             []string
	}{
		{"PUT", "", "", nil},
		{"PUT", "", "x", []string{asText}},
		{"PUT", "", "", []string{"Stream-Forked-From: /ds/trial/s"}},
		{"POST", "", "x", []string{asText}},
		{"POST", "", "x", []string{asText, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0"}},
		{"POST", "", "", []string{"Stream-Closed: true"}},
		{"GET", "", "", nil},
		{"GET", "?offset=bad,offset", "", nil},
		{"GET", "?offset=now", "", nil},
		{"GET", "?offset=-1&live=long-poll", "", nil},
		{"GET", "?offset=-1&live=sse", "", nil},
		{"HEAD", "", "", nil},
		{"DELETE", "", "", nil},
		{"PUT", "/snapshot/" + at, "x", nil},
		{"GET", "/snapshot", "", nil},
		{"GET", "/snapshot/" + at, "", nil},
		{"HEAD", "/snapshot/" + at, "", nil},
		{"DELETE", "/snapshot/" + at, "", nil},
		{"GET", "/bootstrap", "", nil},
		{"GET", "/bootstrap?live=sse", "", nil},
		{"HEAD", "/bootstrap", "", nil},
	} {
		a := c.want(404, tt.method, "/ds/absent/s"+tt.path, tt.body, tt.header...)
		if code := a.code(); tt.method != "HEAD" && code != "bucket_not_found" {
			t.Errorf("%s %s: code %s", tt.method, tt.path, code)
		}
	}
	for _, path := range []string{"/ds/absent", "/ds/absent/streams"} {
		c.want(404, "GET", path, "")
	}
	if a := c.want(404, "PUT", "/ds/trial/fork", "", "Stream-Forked-From: /ds/absent/s"); a.code() != "fork_source_not_found" {
		t.Errorf("a fork of it: %s", a.body)
	}
	if a := c.want(200, "GET", "/ds/trial", ""); !strings.Contains(a.body, `"streams":1`) {
		t.Errorf("the bucket beside it: %s", a.body)
	}
}

// Reading and deleting know two answers about a snapshot that is not there: the latest
// one is not deleted, any other is not found, and so is what is no offset (X§2.5, X§2.6).
func TestMissingSnapshot(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "text/plain", "one")
	first := c.append("/ds/trial/s", "text/plain", "two")
	second := c.append("/ds/trial/s", "text/plain", "three")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+first, "old")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+second, "new")
	for _, offset := range []string{first, second[:len(second)-1] + "9", "0000000000000000_0000000000000000", "0000000000000012", "-1", "now", "x", "%00", "a%2Fb"} {
		for _, method := range []string{"GET", "HEAD", "DELETE"} {
			a := c.want(404, method, "/ds/trial/s/snapshot/"+offset, "")
			if code := a.code(); method != "HEAD" && code != "snapshot_not_found" {
				t.Errorf("%s %s: code %s", method, offset, code)
			}
			if a = c.want(404, method, "/ds/trial/missing/snapshot/"+offset, ""); method != "HEAD" && a.code() != "stream_not_found" {
				t.Errorf("%s %s of no stream: %s", method, offset, a.body)
			}
		}
	}
	c.want(409, "DELETE", "/ds/trial/s/snapshot/"+second, "")
	if a := c.want(200, "GET", "/ds/trial/s/snapshot/"+second, ""); a.body != "new" {
		t.Errorf("the latest is %q", a.body)
	}
}
