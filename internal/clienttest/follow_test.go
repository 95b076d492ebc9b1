package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

// bulk is a text of the given size, of lines that are JSON messages.
func bulk(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "{\"n\":%d,\"text\":%q}\n", i, strings.Repeat("x\té", i%900))
	}
	return b.String()
}

// A stream of many pages, hot and cold, is what was written.
func TestReadPages(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{})
	c := connect(t, server.URL(), client.Options{})
	want := bulk(10 << 20)
	for _, contentType := range []string{asJSON, asBinary} {
		t.Run(contentType, func(t *testing.T) {
			n := stream.Name{Bucket: "demo", ID: strings.ReplaceAll(contentType, "/", "-")}
			s := create(t, c, n.ID, contentType, "")
			body := want
			if contentType == asJSON {
				body = "[" + strings.ReplaceAll(strings.TrimSuffix(want, "\n"), "\n", ",") + "]"
			}
			tail := add(t, s, contentType, body)
			for _, tier := range []string{"hot", "cold"} {
				pages := 0
				got, last := collect(t, s.Read(t.Context(), ""), func(p client.Page) bool { pages++; return false })
				same(t, got, want)
				if pages < 3 || !last.UpToDate || last.Closed || last.Next != tail || last.ContentType != contentType {
					t.Errorf("%s: %d pages, the last to %s, up to date: %v", tier, pages, last.Next, last.UpToDate)
				}
				if err := server.Evict(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			// From the middle, and left in the middle.
			first, err := s.Get(t.Context(), client.Beginning)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := collect(t, s.Read(t.Context(), first.Next), func(client.Page) bool { return true })
			if !strings.HasPrefix(want[len(first.Data):], got) || got == "" {
				t.Error("the second page does not follow the first")
			}
		})
	}
}

// Followers of every kind get every byte once, while their server ends connections in
// order and a network ends them in the middle of everything.
func testFollow(t *testing.T, w *world) {
	proxy := clienttest.NewProxy(t, w.URL())
	for _, live := range []client.Live{client.Auto, client.SSE, client.LongPoll} {
		for _, contentType := range []string{asJSON, asBinary, asText} {
			t.Run(fmt.Sprintf("%d %s", live, contentType), func(t *testing.T) {
				id := strings.ReplaceAll(fmt.Sprint(live, contentType), "/", "-")
				s := w.create(t, id, contentType, "")
				lineEnd := "\r\n"
				if contentType == asJSON || live == client.SSE {
					lineEnd = "\n" // SSE has no other
				}
				proxy.Fail(unlucky(8))
				var want strings.Builder
				line := func(i int) string { return fmt.Sprintf("%q%s", strings.Repeat(fmt.Sprint(i), i), lineEnd) }
				for i := range 50 { // to be caught up with
					add(t, s, contentType, line(i))
					want.WriteString(line(i))
				}
				reader := w.at(t, proxy.URL(), id, client.Options{Live: live})
				n := 50
				got, last := collect(t, reader.Follow(deadline(t), ""), func(client.Page) bool {
					// Whatever came, more comes.
					switch n++; {
					case n < 150:
						add(t, s, contentType, line(n))
						want.WriteString(line(n))
					case n == 150:
						if _, err := s.End(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					return false
				})
				same(t, got, want.String())
				if !last.Closed || last.ContentType != contentType {
					t.Errorf("the last page is %+v", last)
				}
			})
		}
	}
}

// Nothing has to break for a follower to be told of everything, by one connection.
func testFollowInPeace(t *testing.T, w *world) {
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		s := w.create(t, fmt.Sprint("log", live), asJSON, "[1]")
		var n int
		got, last := collect(t, w.at(t, w.URL(), fmt.Sprint("log", live), client.Options{Live: live}).Follow(deadline(t), ""), func(p client.Page) bool {
			if n++; n < 5 {
				add(t, s, asJSON, fmt.Sprintf("[[%d],%d]", n, n))
			} else if n == 5 {
				if _, err := s.Append(t.Context(), []byte(`"end"`), client.AppendOptions{ContentType: asJSON, Close: true}); err != nil {
					t.Fatal(err)
				}
			}
			return false
		})
		same(t, got, "1\n[1]\n1\n[2]\n2\n[3]\n3\n[4]\n4\n\"end\"\n")
		if !last.Closed || !last.UpToDate {
			t.Errorf("the last page is %+v", last)
		}
	}
}

// Where followers begin at the tail, they are told where that is, and see what comes.
func testFollowNow(t *testing.T, w *world) {
	s := w.create(t, "log", asJSON, `[1,2]`)
	n := 2
	got, _ := collect(t, s.Follow(deadline(t), client.Now), func(p client.Page) bool {
		if n == 2 && (len(p.Data) > 0 || !p.UpToDate) {
			t.Errorf("the first page is %+v", p)
		}
		if n++; n <= 5 {
			add(t, s, asJSON, fmt.Sprint(n))
		}
		return n > 5
	})
	same(t, got, "3\n4\n5\n")
}

// A follower survives that its server crashes and another one takes over its data.
func testFollowCrash(t *testing.T, w *world) {
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		id := fmt.Sprint("log", live)
		w.create(t, id, asJSON, "1")
		n := 1
		got, _ := collect(t, w.at(t, w.URL(), id, client.Options{Live: live}).Follow(deadline(t), ""), func(p client.Page) bool {
			if n == 5 || !p.UpToDate {
				return n == 5
			}
			n++
			if err := w.Crash(func() {}); err != nil {
				t.Fatal(err)
			}
			// Over a connection of its own: an append is not repeated.
			add(t, w.stream(t, id), asJSON, fmt.Sprint(n))
			return false
		})
		same(t, got, "1\n2\n3\n4\n5\n")
	}
}

// follows counts the errors of a follower, to which do happens once it is at the tail.
func follows(t *testing.T, s *client.Stream, do func(cancel func())) (failed []error) {
	t.Helper()
	ctx, cancel := context.WithCancel(deadline(t))
	defer cancel()
	for p, err := range s.Follow(ctx, "") {
		if err != nil {
			failed = append(failed, err)
		} else if p.UpToDate {
			do(cancel)
		}
	}
	return failed
}

func testFollowDeleted(t *testing.T, w *world) {
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		s := w.create(t, fmt.Sprint("log", live), asJSON, "1")
		reader := w.at(t, w.URL(), fmt.Sprint("log", live), client.Options{Live: live})
		failed := follows(t, reader, func(func()) { s.Delete(t.Context()) })
		if len(failed) != 1 || !errors.Is(failed[0], stream.ErrNotFound) {
			t.Errorf("mode %d: %v", live, failed)
		}
	}
}

// What ends a follower is told, once.
func testFollowEnds(t *testing.T, w *world) {
	proxy := clienttest.NewProxy(t, w.URL())
	soon := client.Retry{First: time.Millisecond, GiveUp: 20 * time.Millisecond}
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		for name, f := range map[string]struct {
			do func(cancel func())
			is error
		}{
			"canceled": {func(cancel func()) { cancel() }, context.Canceled},
			"unreachable": {func(func()) {
				proxy.Fail(func() clienttest.Fate { return clienttest.Lose })
				proxy.Cut()
			}, client.ErrUnreachable},
		} {
			id := fmt.Sprint(name, live)
			w.create(t, id, asJSON, "1")
			proxy.Fail(in())
			failed := follows(t, w.at(t, proxy.URL(), id, client.Options{Live: live, Retry: soon}), f.do)
			if len(failed) != 1 || !errors.Is(failed[0], f.is) {
				t.Errorf("%s: %v", id, failed)
			}
		}
	}
}

// Events may break off at every byte, and arrive one byte at a time.
func testFollowCut(t *testing.T, w *world) {
	for contentType, pieces := range map[string][]string{
		asJSON:   {`["é",[1]]`, `[2,3]`, `{"a":"\r\n"}`},
		asBinary: {"\x00\xff\r", "\n", "é\n\n"},
		asText:   {"é\n", "\n\n", "data: x\n\nevent: control\n"},
	} {
		w.followCut(t, contentType, pieces)
	}
}

// Nor does a line end become two where a CRLF is not written at once, or a space at the
// beginning of a line get lost.
func testFollowLines(t *testing.T, w *world) {
	w.followCut(t, asText, []string{"a\r", "\nb\r\n", "x\r", "\n  c\r", " d"})
}

// followCut appends the pieces while a reader's event streams are cut after ever more
// bytes, until none is cut any more.
func (w *world) followCut(t *testing.T, contentType string, pieces []string) {
	t.Helper()
	id := strings.ReplaceAll(contentType, "/", "-")
	s := w.create(t, id, contentType, "")
	want := strings.Join(pieces, "")
	if contentType == asJSON {
		want = "\"é\"\n[1]\n2\n3\n{\"a\":\"\\r\\n\"}\n"
	}
	for limit, longest := 0, 1; limit < longest+w.site.step; limit += w.site.step {
		info, err := s.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cutter := &cutter{next: clienttest.NewHTTP(t).Transport, limit: limit}
		reader := w.at(t, w.URL(), id, client.Options{Live: client.SSE, HTTP: &http.Client{Transport: cutter}})
		n := 0
		got, _ := collect(t, reader.Follow(deadline(t), info.Tail), func(p client.Page) bool {
			if n < len(pieces) {
				n++
				info.Tail = add(t, s, contentType, pieces[n-1])
			}
			return n == len(pieces) && p.Next == info.Tail
		})
		if contentType == asText { // of which events keep no other line ends
			got, want = unixLines(got), unixLines(want)
		}
		same(t, got, want)
		if t.Failed() {
			t.Fatalf("event streams of %s were cut after %d bytes", contentType, limit)
		}
		longest = max(longest, cutter.longest)
		if contentType == asText { // each round begins at a line's start
			add(t, s, contentType, ".")
		}
	}
}

func unixLines(s string) string { return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s) }

// cutter lets the first two event streams bring no more than a few bytes each, and all
// of them one byte at a time.
type cutter struct {
	next    http.RoundTripper
	limit   int
	streams int
	longest int // bytes that one has brought
}

func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil || !strings.Contains(r.URL.RawQuery, "live=sse") {
		return resp, err
	}
	c.streams++
	body := &cutBody{Closer: resp.Body, c: c, r: iotest.OneByteReader(resp.Body)}
	if c.streams <= 2 {
		body.r = io.MultiReader(io.LimitReader(body.r, int64(c.limit)), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	resp.Body = body
	return resp, nil
}

type cutBody struct {
	io.Closer
	r io.Reader
	c *cutter
	n int
}

func (b *cutBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	b.n += n
	b.c.longest = max(b.c.longest, b.n)
	return n, err
}

// A server that says it is busy is asked again.
func testFollowBusy(t *testing.T, w *world) {
	front := busy(t, w.URL())
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		id := fmt.Sprint("log", live)
		s := w.create(t, id, asJSON, "0")
		n := 0
		got, last := collect(t, w.at(t, front, id, client.Options{Live: live}).Follow(deadline(t), ""), func(client.Page) bool {
			if n++; n < 10 {
				add(t, s, asJSON, fmt.Sprint(n))
			} else if n == 10 {
				s.End(t.Context())
			}
			return false
		})
		same(t, got, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n")
		if !last.Closed {
			t.Errorf("the last page is %+v", last)
		}
	}
}

// busy stands before a server and answers two of three requests itself, as those do that
// have too much to do or are about to stop.
func busy(t *testing.T, root string) (front string) {
	target, err := url.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(target)
	pass.ErrorLog = log.New(io.Discard, "", 0)
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) % 3 {
		case 0:
			pass.ServeHTTP(rw, r)
		case 1:
			rw.Header().Set("Retry-After", "0")
			rw.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			http.Error(rw, "too many", http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}
