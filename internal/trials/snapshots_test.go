package trials_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"firn/compactor"
	"firn/internal/api"
)

func TestSnapshots(t *testing.T) {
	t.Run("SN-7b4", snapshotMovesTheStart)
	t.Run("SN-ef2", snapshotOffsets)
	t.Run("SN-522", readingOnFromASnapshot)
	t.Run("SN-2de", racingPublishers)
	t.Run("SN-693", foldingClients)
	t.Run("SN-814", replacedWhileItIsRead)
	t.Run("SN-47d", opaqueBlobs)
	t.Run("SN-0f0", snapshotInsideASegment)
}

func snapshotMovesTheStart(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	first := s.append(path, "text/plain", "one")
	second := s.append(path, "text/plain", "two")
	s.append(path, "text/plain", "three")
	s.want(404, "GET", path+"/snapshot", "")
	s.want(204, "PUT", path+"/snapshot/"+second, "S")
	for range 2 {
		for _, query := range []string{"", "?offset=-1", "?offset=" + first, "?live=long-poll&offset=" + first, "?live=sse&offset=" + first, "?live=sse&offset=-1"} {
			a := s.want(410, "GET", path+query, "")
			if a.header.Get("Stream-Earliest-Offset") != second || a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", query, a.header)
			}
		}
		if got := s.want(200, "GET", path+"?offset="+second, "").body; got != "three" {
			t.Errorf("from the snapshot: %q", got)
		}
		s.want(200, "GET", path+"?offset=now", "")
		if got := s.want(200, "HEAD", path, "").header.Get("Stream-Snapshot-Offset"); got != second {
			t.Errorf("HEAD names %q", got)
		}
		if a := s.want(307, "GET", path+"/snapshot", ""); a.header.Get("Location") != s.url+path+"/snapshot/"+second || a.header.Get("Stream-Snapshot-Offset") != second {
			t.Errorf("latest: %v", a.header)
		}
		s.restart()
	}
}

func snapshotOffsets(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "application/json", "")
	a := s.append(path, "application/json", `[1,22,333]`) // ends at 2, 5 and 9
	b := s.append(path, "application/json", `4`)
	publish := func(status int, offset string) {
		t.Helper()
		s.want(status, "PUT", path+"/snapshot/"+offset, "S")
	}
	for _, bad := range []string{"-1", "now", "bad,offset", a[1:], a + "0", "%00"} {
		publish(400, bad)
	}
	s.want(404, "PUT", path+"/snapshot/", "S")
	publish(409, at(b, position(b)+1))
	publish(409, at(b, 1000))
	for _, within := range []int{1, 3, 4, 6, 8, 10} {
		publish(400, at(a, within))
	}
	s.want(404, "GET", path+"/snapshot", "")
	s.holds(path, "[1,22,333,4]")
	for _, message := range []int{2, 5} { // inside a batch, at a message
		publish(204, at(a, message))
	}
	publish(410, at(a, 2))
	publish(410, at(a, 0))
	publish(204, strings.Replace(a, "_", "%5F", 1))
	publish(204, a)
	publish(204, b)
	publish(410, a)
	if got := s.want(200, "HEAD", path, "").header.Get("Stream-Snapshot-Offset"); got != b {
		t.Errorf("snapshot at %s, want %s", got, b)
	}
}

func readingOnFromASnapshot(t *testing.T) {
	for _, kind := range []string{"text/plain", "application/octet-stream", "application/json"} {
		for _, cold := range []bool{false, true} {
			s := serve(t)
			const path = "/ds/trial/s"
			s.create(path, kind, `["a"]`)
			mid := s.append(path, kind, `["b"]`)
			last := s.append(path, kind, `["c"]`)
			if cold {
				s.seal(path)
			}
			for _, tt := range []struct {
				at, rest string
			}{{mid, `["c"]`}, {last, map[bool]string{true: "[]"}[kind == "application/json"]}} {
				s.want(204, "PUT", path+"/snapshot/"+tt.at, "S")
				loc := s.want(307, "GET", path+"/snapshot", "").header.Get("Location")
				a := s.want(200, "GET", strings.TrimPrefix(loc, s.url), "")
				if a.next() != tt.at || a.upToDate() != (tt.at == last) {
					t.Errorf("%s, cold %t: snapshot answers %v", kind, cold, a.header)
				}
				if b := s.want(200, "GET", path+"?offset="+a.next(), ""); b.body != tt.rest || !b.upToDate() {
					t.Errorf("%s, cold %t: the rest is %q", kind, cold, b.body)
				}
			}
		}
	}
}

// racingPublishers has ten clients publish at two offsets, 20 times (500 with -full).
func racingPublishers(t *testing.T) {
	s := serve(t)
	for round := range scaled(20, 500) {
		path := fmt.Sprintf("/ds/trial/s%d", round)
		tails := []string{s.create(path, "text/plain", "0123456789")}
		for range 2 {
			tails = append(tails, s.append(path, "text/plain", "0123456789"))
		}
		s.want(204, "PUT", path+"/snapshot/"+tails[0], "10")
		var g errgroup.Group
		var seen atomic.Int64
		for i := range 10 {
			g.Go(func() error {
				offset := tails[1+i%2]
				before := seen.Load()
				a, err := s.try("PUT", path+"/snapshot/"+offset, fmt.Sprint(position(offset), " by ", i))
				if err != nil || a.status != 204 && a.status != 410 {
					return fmt.Errorf("publish: %d %s, %v", a.status, a.body, err)
				}
				h, err := s.try("HEAD", path, "")
				if err != nil {
					return err
				}
				if now := int64(position(h.header.Get("Stream-Snapshot-Offset"))); now < before {
					return fmt.Errorf("snapshot at %d after %d", now, before)
				} else if now == 30 {
					seen.Store(30)
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		blob := s.want(200, "GET", path+"/snapshot/"+tails[2], "").body
		if !strings.HasPrefix(blob, "30 by ") {
			t.Errorf("blob %q at 30", blob)
		}
		s.want(204, "PUT", path+"/snapshot/"+tails[2], "other bytes")
		if got := s.want(200, "GET", path+"/snapshot/"+tails[2], "").body; got != "other bytes" {
			t.Errorf("replaced by %q", got)
		}
		s.want(410, "PUT", path+"/snapshot/"+tails[1], "late")
	}
}

func replacedWhileItIsRead(t *testing.T) {
	s := serve(t, func(o *options) { o.objects = folder(t) })
	const path = "/ds/trial/s"
	first := s.create(path, "text/plain", "one")
	old := strings.Repeat("old blob ", scaled(2<<20, 64<<20)/9)
	s.want(204, "PUT", path+"/snapshot/"+first, old)
	res, err := s.begin(t.Context(), "GET", path+"/snapshot/"+first, "")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sum := sha256.New()
	if _, err := io.CopyN(sum, res.Body, 100_000); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		tail := s.append(path, "text/plain", "x")
		s.want(204, "PUT", path+"/snapshot/"+tail, fmt.Sprint("new ", i))
	}
	s.collect()
	if left := s.keys(".snapshot"); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
	n, err := io.Copy(sum, res.Body)
	if err == nil && (n != int64(len(old))-100_000 || res.ContentLength != int64(len(old)) || digest(sum) != fmt.Sprintf("%x", sha256.Sum256([]byte(old)))) {
		t.Errorf("a clean end after %d more bytes of %d", n, len(old))
	}
	s.want(404, "GET", path+"/snapshot/"+first, "")
}

func opaqueBlobs(t *testing.T) {
	const limit = 100_000
	s := serve(t, func(o *options) { o.api = api.Options{SnapshotBytes: limit} })
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "x")
	url := path + "/snapshot/" + tail
	for _, tt := range []struct{ kind, blob string }{
		{"application/json", "\x00\xff{no json"},
		{"text/plain; charset=iso-8859-1", "\xe9"},
		{"text/x-state; v=1;  Q=\"a;b\"", "x"},
		{"application/json", ""},
		{"application/octet-stream", strings.Repeat("z", limit)},
	} {
		s.want(204, "PUT", url, tt.blob, "Content-Type: "+tt.kind)
		if a := s.want(200, "GET", url, ""); a.body != tt.blob || a.header.Get("Content-Type") != tt.kind {
			t.Errorf("%q: %d bytes, type %q", tt.kind, len(a.body), a.header.Get("Content-Type"))
		}
	}
	s.want(204, "PUT", url, "default")
	if got := s.want(200, "GET", url, "").header.Get("Content-Type"); got != "application/octet-stream" {
		t.Errorf("no type: %q", got)
	}
	s.want(413, "PUT", url, strings.Repeat("z", limit+1))
	head := "PUT " + url + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	if got := s.raw(head + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", limit+1, strings.Repeat("z", limit+1))); len(got) != 1 || got[0].status != 413 {
		t.Errorf("chunked, over the limit: %+v", got)
	}
	// The answer comes before any byte of the blob was sent.
	c := s.dial()
	send(t, c, head+fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", limit+1))
	if got := answers(t, c); len(got) != 1 || got[0].status != 413 {
		t.Errorf("expected: %+v", got)
	}
	if got := s.want(200, "GET", url, "").body; got != "default" {
		t.Errorf("snapshot is now %.20q", got)
	}
	s.collect()
	if left := s.keys(".snapshot"); len(left) != 1 {
		t.Errorf("left are %q", left)
	}
}

func snapshotInsideASegment(t *testing.T) {
	const kib = 1 << 10
	s := serve(t, func(o *options) { o.policy = compactor.Policy{Target: 64 * kib} })
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	var content strings.Builder
	tails := map[int]string{}
	add := func(n int) {
		for range n {
			text := fmt.Sprintf("%016d", content.Len()) + strings.Repeat("x", 4*kib-16)
			content.WriteString(text)
			tails[content.Len()] = s.append(path, "text/plain", text)
		}
	}
	add(96) // 384 KiB, six segments
	s.seal(path)
	if n := len(s.segments()); n != 6 {
		t.Fatalf("%d segments", n)
	}
	check := func(start, segments int) {
		t.Helper()
		s.collect()
		if n := len(s.segments()); n != segments {
			t.Errorf("snapshot at %d KiB: %d segments, want %d", start/kib, n, segments)
		}
		same(t, "after the snapshot", s.read(path, tails[start]), content.String()[start:])
	}
	publish := func(start int) {
		t.Helper()
		s.want(204, "PUT", path+"/snapshot/"+tails[start], "S")
	}
	publish(160 * kib) // in the middle of the third one
	check(160*kib, 4)
	add(16)
	s.seal(path)
	s.restart()
	check(160*kib, 5)
	publish(164 * kib)
	check(164*kib, 5)
	publish(320 * kib)
	check(320*kib, 2)
	add(1)
	s.seal(path)
	check(320*kib, 3)
}
