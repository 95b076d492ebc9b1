package clienttest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
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
func TestFollow(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{API: api.Options{
		SSEMaxAge: 40 * time.Millisecond, SSEHeartbeat: 5 * time.Millisecond, LongPollTimeout: 20 * time.Millisecond,
	}})
	proxy := clienttest.NewProxy(t, server)
	for _, live := range []client.Live{client.Auto, client.SSE, client.LongPoll} {
		for _, contentType := range []string{asJSON, asBinary, asText} {
			t.Run(fmt.Sprintf("%d %s", live, contentType), func(t *testing.T) {
				writer := connect(t, server.URL(), client.Options{})
				id := strings.ReplaceAll(fmt.Sprint(live, contentType), "/", "-")
				s := create(t, writer, id, contentType, "")
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
				reader := connect(t, proxy.URL(), client.Options{Live: live}).Stream(stream.Name{Bucket: "demo", ID: id})
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

// Where followers begin at the tail, they are told where that is, and see what comes.
func TestFollowNow(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	s := create(t, c, "log", asJSON, `[1,2]`)
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

// A follower survives that its server is replaced by another one with the same data.
func TestFollowRestart(t *testing.T) {
	for _, live := range []client.Live{client.SSE, client.LongPoll} {
		server := clienttest.Serve(t, clienttest.Options{})
		c := connect(t, server.URL(), client.Options{Live: live})
		s := create(t, c, "log", asJSON, "1")
		n := 1
		got, _ := collect(t, s.Follow(deadline(t), ""), func(client.Page) bool {
			if n == 5 {
				return true
			}
			n++
			if err := server.Restart(func() {}); err != nil {
				t.Fatal(err)
			}
			// Over a connection of its own: an append is not repeated.
			again := connect(t, server.URL(), client.Options{})
			add(t, again.Stream(stream.Name{Bucket: "demo", ID: "log"}), asJSON, fmt.Sprint(n))
			return false
		})
		same(t, got, "1\n2\n3\n4\n5\n")
	}
}

// What ends a follower is told, once.
func TestFollowEnds(t *testing.T) {
	proxy := clienttest.NewProxy(t, clienttest.Serve(t, clienttest.Options{}))
	c := connect(t, proxy.URL(), client.Options{Retry: client.Retry{First: time.Millisecond, GiveUp: 20 * time.Millisecond}})
	for _, f := range []struct {
		name string
		do   func(s *client.Stream, cancel func())
		is   error
	}{
		{"deleted", func(s *client.Stream, _ func()) { s.Delete(t.Context()) }, stream.ErrNotFound},
		{"canceled", func(_ *client.Stream, cancel func()) { cancel() }, context.Canceled},
		{"unreachable", func(*client.Stream, func()) {
			proxy.Fail(func() clienttest.Fate { return clienttest.Lose })
			proxy.Cut()
		}, client.ErrUnreachable},
	} {
		s := create(t, c, f.name, asJSON, "1")
		ctx, cancel := context.WithCancel(deadline(t))
		var failed []error
		for p, err := range s.Follow(ctx, "") {
			if err != nil {
				failed = append(failed, err)
			} else if p.UpToDate {
				f.do(s, cancel)
			}
		}
		cancel()
		if len(failed) != 1 || !errors.Is(failed[0], f.is) {
			t.Errorf("%s: %v", f.name, failed)
		}
	}
}
