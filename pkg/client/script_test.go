package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"firn/pkg/client"
)

// reply is an answer in short: its status, header lines and body.
type reply struct {
	status int
	header string
	body   string
	// then is what becomes of the connection after the body, if anything but its end.
	then func(*http.Request)
}

// script is a server that gives one answer after the other, the last one for ever, and
// keeps what it was asked.
type script struct {
	mu      sync.Mutex
	replies []reply
	asked   []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.next(r.Method + " " + r.RequestURI)
	for line := range strings.SplitSeq(a.header, "\n") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(a.status)
	io.WriteString(w, a.body)
	if a.then != nil {
		w.(http.Flusher).Flush()
		a.then(r)
	}
}

func (s *script) next(asked string) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, asked)
	a := s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return a
}

// said is everything that was asked, one request a line.
func (s *script) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.asked, "\n")
}

// abort breaks the connection off.
func abort(*http.Request) { panic(http.ErrAbortHandler) }

// hang keeps it until the client leaves.
func hang(r *http.Request) { <-r.Context().Done() }

// serve answers as told, at most a few times: nothing is repeated unless o says so.
func serve(t *testing.T, o client.Options, replies ...reply) (*script, *client.Stream) {
	t.Helper()
	s := &script{replies: replies}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	o.HTTP = srv.Client()
	if o.Retry == (client.Retry{}) {
		o.Retry.GiveUp = -1
	}
	st, err := client.NewStream(srv.URL+"/s", o)
	if err != nil {
		t.Fatal(err)
	}
	return s, st
}

// page is the answer to a read.
func page(contentType, next, body, more string) reply {
	return reply{status: 200, header: fmt.Sprintf("Content-Type: %s\nStream-Next-Offset: %s\n%s", contentType, next, more), body: body}
}

// pages is what an iteration yields, in short: data, where it ends, and how it ends.
func pages(t *testing.T, seq func(func(client.Page, error) bool)) string {
	t.Helper()
	var b strings.Builder
	for p, err := range seq {
		if err != nil {
			fmt.Fprintf(&b, "error\n")
			t.Log(err)
			continue
		}
		fmt.Fprintf(&b, "%q %s", p.Data, p.Next)
		if p.UpToDate {
			b.WriteString(" up to date")
		}
		if p.Closed {
			b.WriteString(" closed")
		}
		b.WriteString("\n")
	}
	return b.String()
}
