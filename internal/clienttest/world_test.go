package clienttest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

const (
	asJSON   = "application/json"
	asText   = "text/plain"
	asBinary = "application/octet-stream"
)

// impatient waits as little as a test should.
var impatient = client.Retry{First: time.Millisecond, Longest: 20 * time.Millisecond, GiveUp: 30 * time.Second}

// connect makes a client of a server, with a bucket "demo". When the test ends, no
// goroutine of package client may be left.
func connect(t *testing.T, root string, o client.Options) *client.Client {
	t.Helper()
	o.HTTP = clienttest.NewHTTP(t)
	if o.Retry == (client.Retry{}) {
		o.Retry = impatient
	}
	c, err := client.New(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { alone(t) })
	if err := c.CreateBucket(t.Context(), "demo"); err != nil && !errors.Is(err, stream.ErrBucketExists) {
		t.Fatal(err)
	}
	return c
}

// alone fails the test if a goroutine of package client is left. One that has done its
// work may need a moment to be gone.
func alone(t *testing.T) {
	t.Helper()
	for ends := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		var stacks strings.Builder
		pprof.Lookup("goroutine").WriteTo(&stacks, 2)
		if !strings.Contains(stacks.String(), "created by firn/pkg/client.") {
			return
		}
		if time.Now().After(ends) {
			t.Errorf("a goroutine of package client is left:\n%s", &stacks)
			return
		}
	}
}

func create(t *testing.T, c *client.Client, id, contentType string, data string) *client.Stream {
	t.Helper()
	s := c.Stream(stream.Name{Bucket: "demo", ID: id})
	if _, err := s.Create(t.Context(), client.CreateOptions{ContentType: contentType, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s *client.Stream, contentType, data string) client.Offset {
	t.Helper()
	at, err := s.Append(t.Context(), []byte(data), client.AppendOptions{ContentType: contentType})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// collect reads pages to their end, or until stop says so.
func collect(t *testing.T, pages iter.Seq2[client.Page, error], stop func(client.Page) bool) (string, client.Page) {
	t.Helper()
	var all bytes.Buffer
	var last client.Page
	for p, err := range pages {
		if err != nil {
			t.Fatalf("after %d bytes: %v", all.Len(), err)
		}
		all.Write(p.Data)
		if last = p; stop != nil && stop(p) {
			break
		}
	}
	return all.String(), last
}

// deadline is a context for what may hang.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// unlucky loses and tears one in n pieces of what servers answer, each time alike.
func unlucky(n int) func() clienttest.Fate {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	return func() clienttest.Fate {
		switch r.IntN(2 * n) {
		case 0:
			return clienttest.Lose
		case 1:
			return clienttest.Tear
		}
		return clienttest.Pass
	}
}

// in returns the fates one after the other; then all passes.
func in(fates ...clienttest.Fate) func() clienttest.Fate {
	return func() clienttest.Fate {
		if len(fates) == 0 {
			return clienttest.Pass
		}
		f := fates[0]
		fates = fates[1:]
		return f
	}
}

// same reports the first difference of two long texts.
func same(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	near := func(s string) string { return fmt.Sprintf("%q", s[max(0, min(i, len(s))-40):min(len(s), i+40)]) }
	t.Errorf("%d bytes, want %d; they differ at %d:\n%s\n%s", len(got), len(want), i, near(got), near(want))
}
