package trials_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/tier"
)

func TestBootstraps(t *testing.T) {
	t.Run("BS-9d9", formOfTheParts)
	t.Run("BS-1f8", dataThatHoldsTheBoundary)
	t.Run("BS-16d", partialBootstraps)
	t.Run("BS-3d5", bootstrapBesideTheCompactor)
	t.Run("BS-b62", noLiveBootstrap)
	t.Run("BS-871", bootstrapOfEveryKindOfStream)
	t.Run("BS-35b", brokenBootstrap)
}

// formOfTheParts reads with Go's parser and a strict one; Python's email and the parser
// behind a fetch Response in Node were tried by hand.
func formOfTheParts(t *testing.T) {
	s := serve(t)
	for _, n := range []int{0, 1, 3} {
		path := fmt.Sprintf("/ds/trial/s%d", n)
		tail := s.create(path, "application/json", "")
		want := []string{""}
		for i := range n {
			want = append(want, fmt.Sprintf(`{"i":%d,"s":"a\r\nb"}`, i))
			tail = s.append(path, "application/json", want[i+1])
		}
		b := s.bootstrap(path + "/bootstrap")
		if !slices.Equal(b.parts, want) || b.types[0] != "application/octet-stream" {
			t.Errorf("%d messages: parts %q of %q", n, b.parts, b.types)
		}
		if b.header.Get("Stream-Snapshot-Offset") != "-1" || b.next() != tail || !b.upToDate() {
			t.Errorf("%d messages: %v", n, b.header)
		}
		r := multipart.NewReader(strings.NewReader(b.body), b.boundary)
		for i, text := range want {
			p, err := r.NextRawPart()
			if err != nil {
				t.Fatalf("%d messages, part %d: %v", n, i, err)
			}
			if got, err := io.ReadAll(p); err != nil || string(got) != text {
				t.Errorf("%d messages, part %d: %q, %v", n, i, got, err)
			}
		}
		if _, err := r.NextRawPart(); err != io.EOF {
			t.Errorf("%d messages: after the last part: %v", n, err)
		}
	}
}

func dataThatHoldsTheBoundary(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "x")
	seen := s.bootstrap(path + "/bootstrap").boundary
	forged := "\r\n--" + seen + "\r\nContent-Type: text/plain\r\n\r\nforged\r\n--" + seen + "--\r\n"
	s.append(path, "text/plain", forged+"\r\n--"+seen[:len(seen)-1])
	s.want(204, "PUT", path+"/snapshot/"+tail, forged)
	s.create("/ds/trial/j", "application/json", fmt.Sprintf("[%q,1]", forged))
	boundaries := map[string]bool{seen: true}
	for range 100 {
		b := s.bootstrap(path + "/bootstrap")
		if len(b.parts) != 2 || b.parts[0] != forged {
			t.Fatalf("%d parts: %q", len(b.parts), b.parts)
		}
		j := s.bootstrap("/ds/trial/j/bootstrap")
		if len(j.parts) != 3 {
			t.Fatalf("JSON: %d parts: %q", len(j.parts), j.parts)
		}
		for _, boundary := range []string{b.boundary, j.boundary} {
			if boundaries[boundary] || len(boundary) != len(seen) {
				t.Fatalf("boundary %q again, or of another length", boundary)
			}
			boundaries[boundary] = true
		}
	}
}

// partialBootstraps goes to the edge of the limit: 64 KiB, or 8 MiB with -full.
func partialBootstraps(t *testing.T) {
	limit := scaled(64<<10, 8<<20)
	for _, withSnapshot := range []bool{false, true} {
		s := serve(t, func(o *options) { o.tier = tier.Options{BootstrapBytes: limit, ReadBytes: 20 << 10} })
		n := 0
		// check makes a stream of messages of the given sizes and says how many fit.
		check := func(kind string, fit int, complete bool, sizes ...int) {
			t.Helper()
			n++
			path := fmt.Sprintf("/ds/trial/s%d", n)
			s.create(path, kind, "")
			want, head := []string{}, ""
			if withSnapshot {
				start := s.append(path, kind, `"before"`)
				s.want(204, "PUT", path+"/snapshot/"+start, "S")
				head = "S"
			}
			for _, size := range sizes {
				text := `"` + strings.Repeat(string(rune('a'+len(want)%26)), size-2) + `"`
				want = append(want, text)
				s.append(path, kind, text)
			}
			b := s.bootstrap(path + "/bootstrap")
			if b.parts[0] != head || b.upToDate() != complete {
				t.Errorf("%s %d: snapshot %q, up to date %t", kind, sizes, b.parts[0], b.upToDate())
			}
			rest := s.read(path, b.next())
			if kind != "application/json" {
				same(t, kind, strings.Join(b.parts[1:], "")+rest, strings.Join(want, ""))
				if len(b.parts) != 1+fit {
					t.Errorf("%s %d: %d parts, want %d", kind, sizes, len(b.parts)-1, fit)
				}
				return
			}
			if !slices.Equal(b.parts[1:], want[:fit]) {
				t.Errorf("%d: %d messages, want %d", sizes, len(b.parts)-1, fit)
			}
			var got []string
			for _, array := range strings.SplitAfter(strings.ReplaceAll(rest, "][", "]\x00["), "\x00") {
				got = append(got, messages(t, strings.TrimSuffix(array, "\x00"))...)
			}
			if !slices.Equal(got, want[fit:]) {
				t.Errorf("%d: reads on with %d messages, want %d", sizes, len(got), len(want)-fit)
			}
		}
		kib := slices.Repeat([]int{1 << 10}, limit>>10)
		const json, binary = "application/json", "application/octet-stream"
		check(json, len(kib)-1, true, kib[1:]...)
		check(json, len(kib), true, kib...)
		check(json, len(kib), false, append(kib, 3)...)
		check(json, len(kib), false, append(kib, 1<<10, 1<<10)...)
		check(json, 0, false, limit+1)
		check(json, 1, false, 10, limit+1, 10)
		check(json, 1, true, limit)
		check(binary, 1, true, limit)
		check(binary, 0, false, limit, 2)
		check(binary, 1, true, limit/2, limit/2)
	}
}

// bootstrapBesideTheCompactor checks message by message while what is written is sealed
// and evicted at once, and snapshots, which hold the number of the last message before
// them, let the stream begin anew.
func bootstrapBesideTheCompactor(t *testing.T) {
	s := serve(t, func(o *options) { o.policy = compactor.Policy{Target: 1 << 10} })
	const path = "/ds/trial/s"
	s.create(path, "application/json", "")
	s.want(204, "PUT", path+"/snapshot/"+s.tail(path), "0")
	var done atomic.Bool
	var g errgroup.Group
	var partial, whole atomic.Int64
	for range 8 {
		g.Go(func() error {
			for !done.Load() {
				a, err := s.try("GET", path+"/bootstrap", "")
				if err != nil {
					return err
				}
				b, err := takeApart(a)
				if err != nil {
					return err
				}
				first, err := strconv.Atoi(b.parts[0])
				if err != nil {
					return err
				}
				if _, err := count(first, b.parts[1:]); err != nil {
					return err
				}
				length := 0
				for _, m := range b.parts[1:] {
					length += len(m) + 1
				}
				if from := position(a.header.Get("Stream-Snapshot-Offset")); position(a.next()) != from+length {
					return fmt.Errorf("%d bytes from %d, next offset %s", length, from, a.next())
				}
				switch {
				case !a.upToDate():
					partial.Add(1)
				case len(b.parts) > 1:
					whole.Add(1)
				}
			}
			return nil
		})
	}
	for i := range scaled(160, 5000) {
		tail := s.append(path, "application/json", fmt.Sprint(i+1))
		if i%20 == 0 {
			s.want(204, "PUT", path+"/snapshot/"+tail, fmt.Sprint(i+1))
		}
		if i%20 == 12 {
			s.seal(path)
		}
	}
	done.Store(true)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if partial.Load() == 0 || whole.Load() == 0 {
		t.Errorf("%d partial answers, %d whole ones", partial.Load(), whole.Load())
	}
}

// noLiveBootstrap has what internal/api's TestBootstrap and TestMethodNotAllowed leave.
func noLiveBootstrap(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "application/json", "[1,2]")
	for _, live := range []string{"sse", "long-poll", "", "x"} {
		s.want(400, "GET", path+"/bootstrap?live="+live, "")
		s.want(400, "GET", path+"/bootstrap?offset=-1&live="+live, "")
	}
	for _, query := range []string{"?offset=5", "?foo=1"} {
		if got := s.bootstrap(path + "/bootstrap" + query).parts; len(got) != 3 {
			t.Errorf("%s: parts %q", query, got)
		}
	}
	s.want(200, "HEAD", path+"/bootstrap", "")
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		s.want(405, method, path+"/bootstrap", "x", "Content-Type: text/plain")
	}
	if ids, _ := s.list("/ds/trial/streams"); !slices.Equal(ids, []string{"s"}) {
		t.Errorf("streams are %q", ids)
	}
}

func bootstrapOfEveryKindOfStream(t *testing.T) {
	s := serve(t)
	const text = "text/plain"
	s.create("/ds/trial/empty", text, "")
	s.create("/ds/trial/closed", text, "", "Stream-Closed: true")
	s.create("/ds/trial/data", text, "data", "Stream-Closed: true")
	s.create("/ds/trial/cold", text, "data", "Stream-Closed: true")
	s.create("/ds/trial/expired", text, "x", "Stream-TTL: 1")
	s.create("/ds/trial/deleted", text, "x")
	s.create("/ds/trial/soft", text, "soft")
	fork := func(of, is, own string) {
		s.want(201, "PUT", "/ds/trial/"+is, own, "Stream-Forked-From: /ds/trial/"+of)
	}
	fork("soft", "fork", "+own")
	fork("cold", "coldfork", "+own")
	at := s.create("/ds/trial/snapped", text, "12345")
	s.append("/ds/trial/snapped", text, "678")
	s.want(204, "PUT", "/ds/trial/snapped/snapshot/"+at, "S")
	fork("snapped", "snapfork", "9")
	s.want(204, "DELETE", "/ds/trial/deleted", "")
	s.want(204, "DELETE", "/ds/trial/soft", "")
	s.seal("/ds/trial/cold")
	s.clock.add(2 * time.Second)
	for range 2 {
		for _, tt := range []struct {
			id     string
			parts  []string
			end    bool
			closed bool
		}{
			{"empty", []string{""}, true, false},
			{"closed", []string{""}, true, true},
			{"data", []string{"", "data"}, true, true},
			{"cold", []string{""}, false, false},
			{"fork", []string{"", "soft+own"}, true, false},
			{"coldfork", []string{""}, false, false},
			{"snapped", []string{"S", "678"}, true, false},
			{"snapfork", []string{"S", "6789"}, true, false},
		} {
			b := s.bootstrap("/ds/trial/" + tt.id + "/bootstrap")
			if !slices.Equal(b.parts, tt.parts) || b.upToDate() != tt.end || (b.header.Get("Stream-Closed") == "true") != tt.closed {
				t.Errorf("%s: %q, %v", tt.id, b.parts, b.header)
			}
			start := "-1"
			if tt.parts[0] != "" {
				start = at
			}
			all := s.read("/ds/trial/"+tt.id, start)
			if got := strings.Join(b.parts[1:], "") + s.read("/ds/trial/"+tt.id, b.next()); got != all {
				t.Errorf("%s: bootstrap and the rest give %q, a read %q", tt.id, got, all)
			}
		}
		for id, status := range map[string]int{"expired": 404, "deleted": 404, "soft": 410, "missing": 404} {
			s.want(status, "GET", "/ds/trial/"+id+"/bootstrap", "")
		}
		s.restart()
	}
}

// brokenBootstrap breaks the second piece of a snapshot: the one thing that is read
// after the header. Updates are read before; what fails then is answered.
func brokenBootstrap(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "x")
	s.append(path, "text/plain", "update")
	blob := strings.Repeat("0123456789abcdef", 2<<20/16)
	s.want(204, "PUT", path+"/snapshot/"+tail, blob)
	for proto, p := range map[string]http.Protocols{"HTTP/1.1": h1(), "HTTP/2": h2()} {
		tr := &http.Transport{Protocols: &p}
		t.Cleanup(tr.CloseIdleConnections)
		c := s.client
		c.sender = &http.Client{Transport: tr}
		for name, f := range map[string]fault.Fault{
			"cut":     {Op: fault.Get, Key: ".snapshot", Kind: fault.Cut, At: 100, Skip: 1},
			"short":   {Op: fault.Get, Key: ".snapshot", Kind: fault.Short, At: 100, Skip: 1},
			"flipped": {Op: fault.Get, Key: ".snapshot", Kind: fault.Flip, At: 100, Skip: 1},
		} {
			for _, what := range []string{"/bootstrap", "/snapshot/" + tail} {
				s.faults.Script(f)
				res, err := c.begin(context.Background(), "GET", path+what, "")
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err == nil || bytes.HasSuffix(b, []byte("--\r\n")) {
					t.Errorf("%s, %s, %s: a clean end after %d bytes", proto, name, what, len(b))
				}
			}
		}
		s.faults.Script(fault.Fault{Op: fault.Get, Key: ".snapshot", Kind: fault.Before})
		c.want(503, "GET", path+"/bootstrap", "")
		if b := c.bootstrap(path + "/bootstrap"); b.parts[0] != blob || b.parts[1] != "update" {
			t.Errorf("%s: afterwards %d parts", proto, len(b.parts))
		}
	}
	if left := s.faults.Unfired(); len(left) > 0 {
		t.Errorf("faults did not fire: %+v", left)
	}
}
