package trials_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"firn/internal/blob/fs"
)

func TestNames(t *testing.T) {
	t.Run("ID-ddc", pathsAreNotCleaned)
	t.Run("ID-e36", namesAreMeasuredInBytes)
	t.Run("ID-8f9", listingIsNoStream)
	t.Run("ID-141", plusIsNoSpace)
	t.Run("ID-189", namesAreNotNormalized)
	t.Run("ID-2bf", hardNamesReachTheColdTier)
	t.Run("ID-941", namesOfResourcesAreOrdinary)
	t.Run("ID-2c7", controlPrefixIsReserved)
	t.Run("ID-3c1", pagingThroughAChangingBucket)
}

func pathsAreNotCleaned(t *testing.T) {
	s := serve(t)
	tail := s.create("/ds/trial/s", "text/plain", "x")
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"PUT", "/ds/trial/a%2Fb", 400},
		{"PUT", "/ds/trial/..", 400},
		{"PUT", "/ds/trial/%2e%2e", 400},
		{"PUT", "/ds/trial/a..b", 400},
		{"PUT", "/ds/trial/%2e%2e%2fother1%2fx", 400},
		{"POST", "//ds/trial/s", 404},
		{"POST", "/ds//trial/s", 404},
		{"POST", "/ds/trial/./s", 404},
	} {
		got := s.raw(tt.method + " " + tt.path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\ny")
		if len(got) != 1 || got[0].status != tt.status {
			t.Errorf("%s %s: got %+v, want %d", tt.method, tt.path, got, tt.status)
		}
	}
	if got := s.tail("/ds/trial/s"); got != tail {
		t.Errorf("tail is %s, was %s", got, tail)
	}
	if _, l := s.list("/ds/trial/streams"); l.StreamCount != 1 {
		t.Errorf("bucket has %d streams", l.StreamCount)
	}
	s.want(404, "GET", "/ds/other1", "")
}

// listing is a page of a bucket.
type listing struct {
	StreamCount int `json:"stream_count"`
	Streams     []struct {
		StreamID string `json:"stream_id"`
	}
	NextCursor *string `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
}

func (c *client) list(path string) (ids []string, l listing) {
	c.t.Helper()
	a := c.want(200, "GET", path, "")
	if err := json.Unmarshal([]byte(a.body), &l); err != nil {
		c.t.Fatal(err)
	}
	for _, s := range l.Streams {
		ids = append(ids, s.StreamID)
	}
	return ids, l
}

func namesAreMeasuredInBytes(t *testing.T) {
	s := serve(t)
	wide := strings.Repeat("b", 64)
	s.want(201, "PUT", "/ds/"+wide, "")
	s.want(400, "PUT", "/ds/"+wide+"b", "")
	emoji := strings.Repeat(url.PathEscape("\U0001f600"), 29)
	for _, tt := range []struct {
		path string
		ok   bool
	}{
		{"/ds/trial/" + emoji, true},
		{"/ds/trial/" + emoji + "a", false},
		{"/ds/" + wide + "/" + strings.Repeat("x", 57), true},
		{"/ds/" + wide + "/" + strings.Repeat("x", 58), false},
	} {
		if tt.ok {
			tail := s.create(tt.path, "text/plain", "x")
			s.append(tt.path, "text/plain", "y")
			s.want(204, "PUT", tt.path+"/snapshot/"+tail, "z")
			s.want(200, "GET", tt.path+"/bootstrap", "")
			s.seal(tt.path)
			if got := s.read(tt.path, tail); got != "y" {
				t.Errorf("%s: got %q", tt.path, got)
			}
			continue
		}
		for _, method := range []string{"PUT", "GET", "POST", "HEAD", "DELETE"} {
			s.want(400, method, tt.path, "")
		}
		s.want(400, "PUT", tt.path+"/snapshot/x", "")
		s.want(400, "GET", tt.path+"/snapshot", "")
		s.want(400, "GET", tt.path+"/bootstrap", "")
	}
}

func listingIsNoStream(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"streams", "%73treams", "stream%73"} {
		for _, method := range []string{"PUT", "POST", "DELETE"} {
			s.want(405, method, "/ds/trial/"+id, "x", "Content-Type: text/plain")
		}
		if ids, _ := s.list("/ds/trial/" + id); len(ids) != 0 {
			t.Errorf("%s: lists %q", id, ids)
		}
	}
	s.create("/ds/trial/Streams", "text/plain", "")
	s.create("/ds/trial/streams2", "text/plain", "")
}

func plusIsNoSpace(t *testing.T) {
	s := serve(t)
	for path, content := range map[string]string{"/ds/trial/a+b": "P", "/ds/trial/a%20b": "S"} {
		loc := s.want(201, "PUT", path, "", "Content-Type: text/plain").header.Get("Location")
		s.append(path, "text/plain", content)
		if got := s.want(200, "GET", strings.TrimPrefix(loc, s.url), "").body; got != content {
			t.Errorf("%s: Location %s has %q", path, loc, got)
		}
	}
	if got := s.want(200, "GET", "/ds/trial/a%2Bb", "").body; got != "P" {
		t.Errorf("a%%2Bb has %q", got)
	}
	for query, want := range map[string]string{"a%2B": "a+b", "a%20": "a b", "a+": "a b"} {
		if ids, _ := s.list("/ds/trial/streams?prefix=" + query); !slices.Equal(ids, []string{want}) {
			t.Errorf("prefix=%s lists %q", query, ids)
		}
	}
}

func namesAreNotNormalized(t *testing.T) {
	s := serve(t, func(o *options) { o.objects = folder(t) })
	composed, decomposed := "/ds/trial/%C3%A9", "/ds/trial/e%CC%81"
	s.create(composed, "text/plain", "one")
	s.create(decomposed, "text/plain", "two")
	s.seal(composed, decomposed)
	s.restart()
	s.holds(composed, "one")
	s.holds(decomposed, "two")
	if ids, _ := s.list("/ds/trial/streams"); !slices.Equal(ids, []string{"e\u0301", "\u00e9"}) {
		t.Errorf("listed %q", ids)
	}
}

// folder is an object store in a directory, where names meet a file system.
func folder(t *testing.T) *fs.Store {
	t.Helper()
	b, err := fs.Open(filepath.Join(t.TempDir(), "objects"), fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func hardNamesReachTheColdTier(t *testing.T) {
	s := serve(t, func(o *options) { o.objects = folder(t) })
	ids := []string{"x.", "x ", "-x", "Ab", "aB", "ab", "con", "nul", ".x", "~61", "a~61"}
	for _, c := range `:=&@!$'()*,;~%#?\"<>|^` + "`{}[]+\t\x7f\n" {
		ids = append(ids, "x"+string(c)+"y", string(c))
	}
	content := map[string]string{}
	for i, id := range ids {
		path := "/ds/trial/" + url.PathEscape(id)
		content[path] = strings.Repeat(fmt.Sprint(i, id, "\n"), scaled(1<<10, 1<<20)/(len(id)+3))
		s.create(path, "text/plain", content[path])
		s.seal(path)
	}
	s.restart()
	for path, want := range content {
		a := s.want(200, "GET", path, "")
		same(t, path, a.body, want)
		if got := a.header.Get("Server-Timing"); got != `tier;desc="cold"` {
			t.Errorf("%s: read from %s", path, got)
		}
	}
}

func namesOfResourcesAreOrdinary(t *testing.T) {
	s := serve(t)
	s.create("/ds/trial/bootstrap", "text/plain", "one")
	at := s.create("/ds/trial/snapshot", "text/plain", "two")
	s.append("/ds/trial/bootstrap", "text/plain", "1")
	s.append("/ds/trial/snapshot", "text/plain", "2")
	s.holds("/ds/trial/bootstrap", "one1")
	s.holds("/ds/trial/snapshot", "two2")
	if got := s.bootstrap("/ds/trial/bootstrap/bootstrap").parts; !slices.Equal(got, []string{"", "one1"}) {
		t.Errorf("bootstrap of bootstrap: %q", got)
	}
	s.want(204, "PUT", "/ds/trial/snapshot/snapshot/"+at, "S")
	s.want(307, "GET", "/ds/trial/snapshot/snapshot", "")
	if got := s.want(200, "GET", "/ds/trial/snapshot/snapshot/"+at, "").body; got != "S" {
		t.Errorf("snapshot of snapshot: %q", got)
	}
	s.holds("/ds/trial/bootstrap", "one1")
}

func controlPrefixIsReserved(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/ds/__ds", "/ds/__ds/subscriptions", "/ds/__ds/subscriptions/x", "/v1/stream/__ds/x", "/v1/stream/%5F_ds/x"} {
		s.want(400, "PUT", path, "")
		s.want(400, "GET", path, "")
	}
	if ids, _ := s.list("/ds/default/streams"); len(ids) != 0 {
		t.Errorf("created %q", ids)
	}
}

// pagingThroughAChangingBucket walks over 250 streams (2500 with -full), page by page,
// while others come and go, with a restart half-way.
func pagingThroughAChangingBucket(t *testing.T) {
	s := serve(t)
	n := scaled(250, 2500)
	var stay []string
	for i := range n {
		id := fmt.Sprintf("stay-%04d", i*7919%n)
		stay = append(stay, id)
		s.create("/ds/trial/"+id, "text/plain", "")
	}
	slices.Sort(stay)

	var seen []string
	cursor := ""
	for page := 0; ; page++ {
		// Before and behind the cursor ids come and go.
		for _, id := range []string{"a", "stay-0100x", "z"} {
			path := "/ds/trial/" + id + strconv.Itoa(page)
			s.create(path, "text/plain", "")
			if page > 0 {
				s.want(204, "DELETE", "/ds/trial/"+id+strconv.Itoa(page-1), "")
			}
		}
		if page == n/14 {
			s.restart()
		}
		ids, l := s.list("/ds/trial/streams?limit=7&after=" + url.QueryEscape(cursor))
		for _, id := range ids {
			if _, found := slices.BinarySearch(stay, id); found {
				seen = append(seen, id)
			}
		}
		if l.HasMore != (l.NextCursor != nil) || l.HasMore && len(ids) != 7 {
			t.Fatalf("page %d: %d ids, has_more %t", page, len(ids), l.HasMore)
		}
		if !l.HasMore {
			break
		}
		cursor = *l.NextCursor
	}
	if !slices.Equal(seen, stay) {
		t.Errorf("saw %d ids, want %d, each once in order", len(seen), len(stay))
	}
	for _, limit := range []string{"0", "1001", "-1", "abc"} {
		s.want(400, "GET", "/ds/trial/streams?limit="+limit, "")
	}
	s.want(204, "DELETE", "/ds/trial/"+stay[3], "")
	if ids, _ := s.list("/ds/trial/streams?limit=1&prefix=stay&after=" + stay[3]); !slices.Equal(ids, stay[4:5]) {
		t.Errorf("after a deleted id: %q", ids)
	}

	// Neither expired nor soft-deleted streams count.
	s.create("/ds/trial/gone", "text/plain", "", "Stream-TTL: 1")
	s.create("/ds/trial/kept", "text/plain", "x")
	s.create("/ds/trial/kept-fork", "text/plain", "", "Stream-Forked-From: /ds/trial/kept")
	s.want(204, "DELETE", "/ds/trial/kept", "")
	s.clock.add(1e10)
	s.restart()
	var bucket struct{ Streams int }
	if err := json.Unmarshal([]byte(s.want(200, "GET", "/ds/trial", "").body), &bucket); err != nil {
		t.Fatal(err)
	}
	if ids, _ := s.list("/ds/trial/streams"); len(ids) < 1000 && bucket.Streams != len(ids) || slices.Contains(ids, "gone") || slices.Contains(ids, "kept") {
		t.Errorf("%d are counted, %d listed", bucket.Streams, len(ids))
	}
}
