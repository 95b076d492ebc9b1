package trials_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"firn/internal/blob/fault"
	"firn/tier"
)

func TestReads(t *testing.T) {
	t.Run("RD-278", tagTellsTheEnd)
	t.Run("RD-112", tagOfAnEarlierLife)
	t.Run("RD-ad5", directivesOnEveryAnswer)
	t.Run("RD-a1a", cursorsAdvance)
	t.Run("RD-5c8", joint)
	t.Run("RD-535", headNeedsNoBytes)
}

// tagTellsTheEnd has what internal/api's TestConditionalReads leaves: a read at the tail
// before and after the close, hot and cold.
func tagTellsTheEnd(t *testing.T) {
	for _, cold := range []bool{false, true} {
		s := serve(t)
		const path = "/ds/trial/s"
		tail := s.create(path, "text/plain", "hello")
		if cold {
			s.seal(path)
		}
		tags := map[string]string{}
		for _, query := range []string{"?offset=" + tail, "?offset=-1"} {
			tags[query] = s.want(200, "GET", path+query, "").header.Get("ETag")
			if a := s.want(304, "GET", path+query, "", "If-None-Match: "+tags[query]); a.body != "" {
				t.Errorf("304 with body %q", a.body)
			}
		}
		s.want(204, "POST", path, "", "Stream-Closed: true")
		for query, tag := range tags {
			a := s.want(200, "GET", path+query, "", "If-None-Match: "+tag)
			if a.header.Get("Stream-Closed") != "true" || a.header.Get("ETag") == tag {
				t.Errorf("%s, closed: %v", query, a.header)
			}
		}
	}
}

func tagOfAnEarlierLife(t *testing.T) {
	for _, cold := range []bool{false, true} {
		for _, end := range []string{"deleted", "expired"} {
			s := serve(t)
			const path = "/ds/trial/s"
			s.create(path, "text/plain", "aaaa", "Stream-TTL: 60")
			if cold {
				s.seal(path)
			}
			tag := s.want(200, "GET", path, "").header.Get("ETag")
			if end == "deleted" {
				s.want(204, "DELETE", path, "")
			} else {
				s.clock.add(2 * time.Minute)
			}
			s.create(path, "text/plain", "bbbb")
			if cold {
				s.seal(path)
			}
			if a := s.want(200, "GET", path, "", "If-None-Match: "+tag); a.body != "bbbb" {
				t.Errorf("%s, cold %t: %q", end, cold, a.body)
			}
		}
	}
}

func directivesOnEveryAnswer(t *testing.T) {
	s := serve(t)
	tail := s.create("/ds/trial/s", "text/plain", "x")
	s.want(204, "PUT", "/ds/trial/s/snapshot/"+tail, "S")
	s.append("/ds/trial/s", "text/plain", "y")
	for _, path := range []string{
		"/ds/trial", "/ds/trial/streams", "/ds/trial/missing", "/ds/trial/s", "/ds/trial/s/bootstrap", "/ds/trial/s/snapshot", "/ds/trial/s/snapshot/" + tail,
		"/ds/trial/s?offset=" + tail, "/ds/trial/s?offset=now", "/ds/trial/s?live=long-poll&offset=" + tail, "/ds/trial/s?live=sse&offset=" + tail,
	} {
		for _, header := range [][]string{nil, {"Authorization: Bearer x"}} {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			res, err := s.begin(ctx, "GET", path, "", header...)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			cancel()
			if got := res.Header.Get("Cache-Control"); !strings.Contains(got, "no-store") && !strings.Contains(got, "private") || strings.Contains(got, "public") {
				t.Errorf("%s %q: Cache-Control %q", path, header, got)
			}
		}
	}
}

// cursorsAdvance has what internal/api's cursor tests leave: a client that echoes what
// it is told while the clock goes back, and both live modes.
func cursorsAdvance(t *testing.T) {
	s := serve(t, func(o *options) { o.api.LongPollTimeout = time.Millisecond })
	tail := s.create("/ds/trial/s", "text/plain", "x")
	poll := "/ds/trial/s?live=long-poll&offset=" + tail + "&cursor="
	number := func(cursor string) int64 {
		n, err := strconv.ParseInt(cursor, 10, 64)
		if err != nil {
			t.Fatalf("cursor %q", cursor)
		}
		return n
	}
	had := number(s.want(204, "GET", poll, "").header.Get("Stream-Cursor"))
	for round := range 20 {
		if round == 10 {
			s.clock.add(-time.Hour)
		}
		next := number(s.want(204, "GET", poll+fmt.Sprint(had), "").header.Get("Stream-Cursor"))
		if next <= had {
			t.Fatalf("cursor %d after %d", next, had)
		}
		if had = next; round%3 == 0 {
			had += 5
		}
	}
	_, c := s.subscribe("/ds/trial/s?live=sse&offset=" + tail + "&cursor=" + fmt.Sprint(had)).must()
	if number(c.StreamCursor) <= had {
		t.Errorf("SSE: cursor %s after %d", c.StreamCursor, had)
	}
	for _, cursor := range []string{"-1", "abc", "%00"} {
		number(s.want(204, "GET", poll+cursor, "").header.Get("Stream-Cursor"))
	}
	for _, live := range []string{"long-poll", "sse"} {
		s.want(400, "GET", "/ds/trial/s?offset=-1&live="+live+"&cursor=99999999999999999999", "")
	}
}

// joint seals up to an uneven point and reads from offsets around it (500 with -full).
func joint(t *testing.T) {
	for _, kind := range []string{"application/octet-stream", "application/json"} {
		s := serve(t, func(o *options) { o.tier = tier.Options{ReadBytes: 2000} })
		const path = "/ds/trial/s"
		s.create(path, kind, "")
		bounds := []string{}
		stored := ""
		part := 0
		add := func(n int) {
			for range n {
				part++
				text := fmt.Sprintf("[%d,%q]", part, strings.Repeat("x", part*37%300))
				wire := text
				if kind == "application/json" {
					text, wire = text+"\n", "["+text+"]"
				}
				bounds = append(bounds, s.append(path, kind, wire))
				stored += text
			}
		}
		add(31)
		s.seal(path)
		edge := len(bounds) - 1
		add(40)
		read := func(offset string) string {
			var got strings.Builder
			for {
				a := s.want(200, "GET", path+"?offset="+offset, "")
				if kind == "application/json" {
					for _, m := range messages(t, a.body) {
						got.WriteString(m + "\n")
					}
				} else {
					got.WriteString(a.body)
				}
				if offset = a.next(); a.upToDate() {
					return got.String()
				}
				if a.body == "" || a.body == "[]" {
					t.Fatalf("empty before the tail, at %s", offset)
				}
			}
		}
		same(t, kind, read("-1"), stored)
		for i, offset := range bounds {
			if i%4 == 0 || max(i-edge, edge-i) < 3 || *flagFull {
				same(t, kind+" at "+offset, read(offset), stored[position(offset):])
			}
		}
		for _, d := range []int{-1, 1} {
			near := at(bounds[edge], position(bounds[edge])+d)
			if kind == "application/json" {
				s.want(400, "GET", path+"?offset="+near, "")
			} else {
				same(t, "beside the joint", read(near), stored[position(near):])
			}
		}
	}
}

func headNeedsNoBytes(t *testing.T) {
	s := serve(t)
	at := s.create("/ds/trial/cold", "text/plain", "x", "Stream-TTL: 60")
	s.want(204, "PUT", "/ds/trial/cold/snapshot/"+at, "S")
	s.append("/ds/trial/cold", "text/plain", "y", "Stream-Closed: true")
	s.seal("/ds/trial/cold")
	s.create("/ds/trial/soft", "text/plain", "x")
	s.want(201, "PUT", "/ds/trial/fork", "", "Stream-Forked-From: /ds/trial/soft")
	s.want(204, "DELETE", "/ds/trial/soft", "")
	s.create("/ds/trial/expired", "text/plain", "x", "Stream-TTL: 1")
	s.clock.add(50 * time.Second)
	s.faults.Script(fault.Fault{Kind: fault.Stall, Times: fault.Always})
	before := s.faults.Calls("")

	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	h2 := &http.Transport{Protocols: &p}
	t.Cleanup(h2.CloseIdleConnections)
	for proto, tr := range map[string]http.RoundTripper{"HTTP/1.1": s.sender.Transport, "HTTP/2": h2} {
		c := s.client
		c.sender = &http.Client{Transport: tr}
		for path, status := range map[string]int{"cold": 200, "fork": 200, "missing": 404, "soft": 410, "expired": 404} {
			a := c.want(status, "HEAD", "/ds/trial/"+path, "")
			if a.body != "" || status != 200 && (a.header.Get("Content-Type") != "" || a.header.Get("Content-Length") > "0") {
				t.Errorf("%s %s: body %q, %v", proto, path, a.body, a.header)
			}
			if path == "cold" && (a.next() == "" || a.header.Get("Stream-TTL") != "60" || a.header.Get("Stream-Closed") != "true" || a.header.Get("Stream-Snapshot-Offset") != at) {
				t.Errorf("%s %s: %v", proto, path, a.header)
			}
		}
	}
	if n := s.faults.Calls("") - before; n != 0 {
		t.Errorf("%d calls of the object store", n)
	}
	s.faults.Clear()
	// 50 s and 20 s are more than a TTL of 60 s: no HEAD has renewed it.
	s.clock.add(20 * time.Second)
	s.want(404, "HEAD", "/ds/trial/cold", "")
}
