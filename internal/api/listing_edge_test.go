package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"firn/internal/api"
)

// page is one page of a listing.
type page struct {
	BucketID string `json:"bucket_id"`
	Prefix   string
	Count    int `json:"stream_count"`
	Streams  []struct {
		ID     string `json:"stream_id"`
		Status string
		Tail   int `json:"tail_offset"`
	}
	Next *string `json:"next_cursor"`
	More bool    `json:"has_more"`
}

func (p page) ids() []string {
	var ids []string
	for _, s := range p.Streams {
		ids = append(ids, s.ID)
	}
	return ids
}

func (c *client) list(query string) page {
	c.t.Helper()
	var p page
	if err := json.Unmarshal([]byte(c.want(200, "GET", "/ds/trial/streams"+query, "").body), &p); err != nil {
		c.t.Fatal(err)
	}
	return p
}

// TestListingPages goes over the edge of the largest page, which is also the default.
func TestListingPages(t *testing.T) {
	c, _ := connect(t, api.Options{})
	var all []string
	for i := range 1001 {
		all = append(all, fmt.Sprintf("s%04d", i))
		c.create("/ds/trial/"+all[i], "text/plain", "")
	}
	for _, tt := range []struct {
		query       string
		first, last int
		more        bool
	}{
		{"", 0, 999, true},
		{"?limit=1000", 0, 999, true},
		{"?limit=1", 0, 0, true},
		{"?after=s0000", 1, 1000, false},
		{"?after=s0000&limit=999", 1, 999, true},
		{"?after=s", 0, 999, true},
		{"?after=s0999", 1000, 1000, false},
		{"?prefix=s0", 0, 999, false},
		{"?prefix=s0&limit=999", 0, 998, true},
		{"?prefix=s1", 1000, 1000, false},
		{"?prefix=s05&after=s0597", 598, 599, false},
		{"?prefix=s05&after=a&limit=100", 500, 599, false},
		{"?prefix=s0500", 500, 500, false},
		{"?prefix=s0500&after=s0500", 1, 0, false},
		{"?prefix=s05&after=s06", 1, 0, false},
		{"?after=s1000", 1, 0, false},
		{"?prefix=t", 1, 0, false},
	} {
		p := c.list(tt.query)
		if want := all[min(tt.first, tt.last+1) : tt.last+1]; !slices.Equal(p.ids(), want) && len(want)+len(p.Streams) > 0 {
			t.Errorf("%s: %d streams, %.3q to %.3q", tt.query, len(p.Streams), p.ids(), want)
		}
		if p.More != tt.more || (p.Next != nil) != tt.more || p.More && *p.Next != all[tt.last] {
			t.Errorf("%s: more %t, next %v", tt.query, p.More, p.Next)
		}
		if p.BucketID != "trial" || p.Count != len(all) {
			t.Errorf("%s: bucket %s of %d streams", tt.query, p.BucketID, p.Count)
		}
	}
	for _, query := range []string{"prefix=%ff", "after=s%c3", "prefix=a&prefix=b", "after=", "limit=1001"} {
		status := map[bool]int{true: 200, false: 400}[query == "after="]
		c.want(status, "GET", "/ds/trial/streams?"+query, "")
	}
}

// Streams are sorted by the bytes of their ids, whatever the characters; a walk of one
// at a time meets each once.
func TestListingOrder(t *testing.T) {
	c, _ := connect(t, api.Options{})
	want := []string{"\x01", " ", "%", "+", "-", "0", "B", "Streams", "_", "a", "a b", "a+b", "ab", "e\u0301", "snapshot", "~", "é", "\uffff", "\U0001f600"}
	for _, i := range []int{7, 18, 0, 3, 12, 16, 1, 5, 9, 14, 2, 11, 17, 4, 8, 13, 6, 10, 15} {
		c.create("/ds/trial/"+strings.ReplaceAll(url.QueryEscape(want[i]), "+", "%20"), "text/plain", "12345"[:i%6])
	}
	if p := c.list(""); !slices.Equal(p.ids(), want) || p.More {
		t.Errorf("listed %q", p.ids())
	}
	var walked []string
	for query := "?limit=1"; ; {
		p := c.list(query)
		walked = append(walked, p.ids()...)
		if p.Streams[0].Tail != (len(walked)-1)%6 || p.Streams[0].Status != "Open" {
			t.Errorf("listed %+v", p.Streams[0])
		}
		if !p.More {
			break
		}
		query = "?limit=1&after=" + url.QueryEscape(*p.Next)
	}
	if !slices.Equal(walked, want) {
		t.Errorf("walked over %q", walked)
	}
	for prefix, n := range map[string]int{"a": 4, "a ": 1, "a+": 1, "é": 1, "e": 1, "\U0001f600": 1, "s": 1, "": len(want)} {
		if p := c.list("?prefix=" + url.QueryEscape(prefix)); len(p.Streams) != n || p.Prefix != prefix {
			t.Errorf("prefix %q: %q of %q", prefix, p.ids(), p.Prefix)
		}
	}
}
