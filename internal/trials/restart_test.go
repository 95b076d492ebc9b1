package trials_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// told are the headers that say what a stream is.
func told(a answer) string {
	var all []string
	for name, values := range a.header {
		if strings.HasPrefix(name, "Stream-") || strings.HasPrefix(name, "Producer-") || slices.Contains([]string{"Content-Type", "Etag", "Cache-Control"}, name) {
			all = append(all, fmt.Sprintf("%s: %q", name, values))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// TestKillForgetsNothing kills the binary, twice, with bytes in both tiers and
// everything that a stream can remember, and asks again.
func TestKillForgetsNothing(t *testing.T) {
	p := spawn(t)
	const text, json, closed = "Content-Type: text/plain", "Content-Type: application/json", "Stream-Closed: true"
	p.create("/ds/trial/open", "Text/Plain; charset=UTF-8", "one")
	p.want(200, "POST", "/ds/trial/open", "two", append(by("p", 3, 0), text, "Stream-Seq: b")...)
	p.want(200, "POST", "/ds/trial/open", "three", append(by("p", 3, 1), text)...)
	p.create("/ds/trial/closed", "text/plain", "one")
	p.want(200, "POST", "/ds/trial/closed", "end", append(by("p", 0, 0), text, closed)...)
	p.create("/ds/trial/closed-later", "text/plain", "one")
	p.want(204, "POST", "/ds/trial/closed-later", "", append(by("q", 9, 0), closed)...)
	p.create("/ds/trial/closed-at-once", "application/json", "[1]", closed)
	p.create("/ds/trial/ttl", "text/plain", "x", "Stream-TTL: 3600")
	p.create("/ds/trial/dated", "text/plain", "x", "Stream-Expires-At: 2090-01-02T03:04:05.678Z")
	p.create("/ds/trial/empty", "application/json", "[]")
	source := p.create("/ds/trial/source", "application/json", "[1,2,3]")
	p.want(201, "PUT", "/ds/trial/fork", "[4]", "Stream-Forked-From: /ds/trial/source", "Stream-Fork-Offset: "+source[:17]+"0000000000000002", "Stream-Fork-Sub-Offset: 1")
	p.want(201, "PUT", "/ds/trial/fork-of-deleted", "", "Stream-Forked-From: /ds/trial/fork")
	p.want(204, "DELETE", "/ds/trial/fork", "")
	p.create("/ds/trial/trimmed", "text/plain", "one")
	trimmed := p.append("/ds/trial/trimmed", "text/plain", "two")
	p.append("/ds/trial/trimmed", "text/plain", "three")
	p.want(204, "PUT", "/ds/trial/trimmed/snapshot/"+trimmed, "S", "Content-Type: text/x-state")
	p.create("/ds/trial/deleted", "text/plain", "old")
	old := p.tail("/ds/trial/deleted")
	p.want(204, "DELETE", "/ds/trial/deleted", "")
	p.want(201, "PUT", "/v1/stream/a/b/c", "flat", text)

	look := func() map[string]string {
		all := map[string]string{}
		for _, path := range []string{
			"/ds/trial/open", "/ds/trial/closed", "/ds/trial/closed-later", "/ds/trial/closed-at-once", "/ds/trial/ttl", "/ds/trial/dated", "/ds/trial/empty",
			"/ds/trial/source", "/ds/trial/fork", "/ds/trial/fork-of-deleted", "/ds/trial/trimmed", "/ds/trial/deleted", "/v1/stream/a/b/c",
		} {
			for _, read := range []string{"HEAD ", "GET ", "GET ?offset=now"} {
				method, query, _ := strings.Cut(read, " ")
				a := p.do(method, path+query, "")
				all[read+path] = fmt.Sprintf("%d\n%s\n%s", a.status, told(a), a.body)
			}
		}
		for _, path := range []string{"/ds/trial/trimmed?offset=" + trimmed, "/ds/trial/trimmed/snapshot/" + trimmed, "/ds/trial/deleted?offset=" + old, "/ds/trial/streams"} {
			a := p.do("GET", path, "")
			all[path] = fmt.Sprintf("%d\n%s\n%s", a.status, told(a), a.body)
		}
		return all
	}
	before := look()
	compare := func(when string) {
		t.Helper()
		after := look()
		for _, what := range slices.Sorted(maps.Keys(before)) {
			if after[what] != before[what] {
				t.Errorf("%s, %s: it was\n%s\nand is\n%s", when, what, before[what], after[what])
			}
		}
	}
	p.kill()
	p.start()
	compare("killed")
	for _, id := range []string{"open", "closed", "closed-at-once", "source", "fork-of-deleted", "trimmed"} {
		for _, step := range []string{"seal", "evict"} {
			if err := p.operate("/ds/trial/"+id, step); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.metric("firn_compactor_sealed_bytes_total") == 0 {
		t.Error("nothing was sealed")
	}
	compare("sealed")
	p.kill()
	p.start()
	compare("killed again")

	// What writers are told.
	if a := p.want(204, "POST", "/ds/trial/open", "again", append(by("p", 3, 0), text, "Stream-Seq: b")...); a.header.Get("Producer-Seq") != "1" {
		t.Errorf("duplicate: %v", a.header)
	}
	if a := p.want(409, "POST", "/ds/trial/open", "x", append(by("p", 3, 3), text)...); a.header.Get("Producer-Expected-Seq") != "2" {
		t.Errorf("gap: %v", a.header)
	}
	if a := p.want(403, "POST", "/ds/trial/open", "x", append(by("p", 2, 0), text)...); a.header.Get("Producer-Epoch") != "3" {
		t.Errorf("stale: %v", a.header)
	}
	p.want(409, "POST", "/ds/trial/open", "x", text, "Stream-Seq: b")
	p.want(204, "POST", "/ds/trial/closed", "other", append(by("p", 0, 0), text, closed)...)
	p.want(409, "POST", "/ds/trial/closed", "end", append(by("p", 0, 1), text, closed)...)
	p.want(409, "POST", "/ds/trial/closed", "end", append(by("q", 0, 0), text, closed)...)
	p.want(204, "POST", "/ds/trial/closed-later", "", append(by("q", 9, 0), closed)...)
	p.want(403, "POST", "/ds/trial/closed-later", "", append(by("q", 8, 0), closed)...)
	p.want(409, "POST", "/ds/trial/closed-at-once", "2", json)
	p.want(204, "POST", "/ds/trial/closed-at-once", "", closed)
	p.want(200, "PUT", "/ds/trial/closed-at-once", "", json, closed)
	p.want(409, "PUT", "/ds/trial/closed-at-once", "", json)
	p.want(200, "PUT", "/ds/trial/dated", "", text, "Stream-Expires-At: 2090-01-02T04:04:05.678+01:00")
	p.want(409, "PUT", "/ds/trial/fork", "", json)
	p.want(410, "POST", "/ds/trial/fork", "1", json)
	p.want(409, "PUT", "/ds/trial/another", "", "Stream-Forked-From: /ds/trial/fork")
	compare("asked again")
	p.want(204, "DELETE", "/ds/trial/fork-of-deleted", "")
	p.want(404, "HEAD", "/ds/trial/fork", "")
}

// TestTagsTellNoTier: a tag stays what it is while bytes move and the server is started
// again, and changes with the content, the close and the life.
func TestTagsTellNoTier(t *testing.T) {
	for kind, body := range map[string]string{"text/plain": "hello", "application/json": `["hello"]`} {
		t.Run(kind, func(t *testing.T) {
			s := serve(t)
			const path, fork = "/ds/trial/s", "/ds/trial/f"
			middle := s.create(path, kind, body)
			s.append(path, kind, body)
			s.want(201, "PUT", fork, body, "Stream-Forked-From: "+path)
			queries := []string{path, path + "?offset=" + middle, path + "?offset=" + s.tail(path), fork, fork + "?offset=" + middle}
			tags := map[string]string{}
			take := func(changed bool, when string) {
				t.Helper()
				for _, q := range queries {
					a := s.want(200, "GET", q, "")
					switch tag := a.header.Get("ETag"); {
					case tag == "":
						t.Fatalf("%s: %s has no tag", when, q)
					case changed == (tag == tags[q]):
						t.Errorf("%s: %s has the tag %s, had %s", when, q, tag, tags[q])
					default:
						tags[q] = tag
					}
					s.want(304, "GET", q, "", "If-None-Match: "+tags[q])
				}
				seen := map[string]string{}
				for q, tag := range tags {
					if other, ok := seen[tag]; ok {
						t.Errorf("%s: %s and %s share the tag %s", when, q, other, tag)
					}
					seen[tag] = q
				}
			}
			take(true, "new")
			s.sealOnly(path)
			take(false, "sealed")
			s.seal(path, fork)
			if got := s.want(200, "GET", path, "").header.Get("Server-Timing"); !strings.Contains(got, "cold") {
				t.Fatalf("the bytes are %s", got)
			}
			take(false, "cold")
			s.restart()
			take(false, "started again")
			s.append(path, kind, body)
			s.append(fork, kind, body)
			take(true, "grown")
			s.seal(path, fork)
			take(false, "cold again")
			s.want(204, "POST", path, "", "Stream-Closed: true")
			s.want(204, "POST", fork, "", "Stream-Closed: true")
			take(true, "closed")
			s.restart()
			take(false, "closed and started again")

			// The same bytes, offsets apart, under the same name.
			s.want(204, "DELETE", fork, "")
			s.want(204, "DELETE", path, "")
			old := tags[path]
			s.create(path, kind, body)
			s.append(path, kind, body)
			s.append(path, kind, body, "Stream-Closed: true")
			s.seal(path)
			if a := s.want(200, "GET", path, "", "If-None-Match: "+old); a.header.Get("ETag") == old {
				t.Error("the next life has the same tag")
			}
		})
	}
}
