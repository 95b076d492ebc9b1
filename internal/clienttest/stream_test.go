package clienttest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/internal/clienttest"
	"firn/pkg/client"
	"firn/pkg/stream"
)

func TestCreate(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	ctx := t.Context()
	for _, n := range []stream.Name{{Bucket: "demo", ID: "ä b+c%?#"}, {Bucket: "default", ID: "a/b c/d"}, {Bucket: "default", ID: "streams"}} {
		s := c.Stream(n)
		if made, err := s.Create(ctx, client.CreateOptions{}); err != nil || !made.New || made.ContentType != asBinary {
			t.Errorf("%s: %+v, %v", n, made, err)
		}
		if made, err := s.Create(ctx, client.CreateOptions{}); err != nil || made.New {
			t.Errorf("%s again: %+v, %v", n, made, err)
		}
		if _, err := s.Create(ctx, client.CreateOptions{ContentType: asJSON}); !errors.Is(err, stream.ErrExists) {
			t.Errorf("%s of another type: %v", n, err)
		}
		byURL, err := client.NewStream(s.URL(), client.Options{HTTP: clienttest.NewHTTP(t)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := byURL.Append(ctx, []byte("x"), client.AppendOptions{}); err != nil {
			t.Errorf("%s: %v", s.URL(), err)
		}
		if err := s.Delete(ctx); err != nil {
			t.Errorf("delete %s: %v", n, err)
		}
		if _, err := s.Head(ctx); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("%s after delete: %v", n, err)
		}
	}

	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	for id, o := range map[string]client.CreateOptions{
		"ttl": {TTL: 59*time.Second + 1}, "at": {ExpiresAt: ends}, "closed": {Closed: true, Data: []byte("all")},
	} {
		s := c.Stream(stream.Name{Bucket: "demo", ID: id})
		made, err := s.Create(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Head(ctx)
		if err != nil || info.TTL != map[string]time.Duration{"ttl": time.Minute}[id] || info.Closed != (id == "closed") ||
			made.Closed != info.Closed || info.ExpiresAt.Equal(ends) != (id == "at") || info.Tail != made.Tail {
			t.Errorf("%s: %+v, %+v, %v", id, made, info, err)
		}
	}
}

func TestFork(t *testing.T) {
	server := clienttest.Serve(t, clienttest.Options{})
	c := connect(t, server.URL(), client.Options{})
	source := create(t, c, "source ü", asJSON, `[1,2]`)
	at, err := source.AppendJSON(t.Context(), []int{3}, "four")
	if err != nil {
		t.Fatal(err)
	}
	add(t, source, asJSON, `[5,6]`)
	flat := c.Stream(stream.Name{Bucket: "default", ID: "x/y"})
	if _, err := flat.Create(t.Context(), client.CreateOptions{ContentType: asJSON, Data: []byte(`[9]`)}); err != nil {
		t.Fatal(err)
	}
	for i, f := range []struct {
		fork client.Fork
		want string
	}{
		{client.Fork{Source: source}, "1\n2\n[3]\n\"four\"\n5\n6\n"},
		{client.Fork{Source: source, Offset: at}, "1\n2\n[3]\n\"four\"\n"},
		{client.Fork{Source: source, Offset: at, Sub: 1}, "1\n2\n[3]\n\"four\"\n5\n"},
		{client.Fork{Source: flat}, "9\n"},
	} {
		s := c.Stream(stream.Name{Bucket: "demo", ID: fmt.Sprint("fork", i)})
		if made, err := s.Create(t.Context(), client.CreateOptions{Fork: &f.fork}); err != nil || made.ContentType != asJSON {
			t.Fatalf("fork %d: %+v, %v", i, made, err)
		}
		got, _ := collect(t, s.Read(t.Context(), client.Beginning), nil)
		same(t, got, f.want)
	}
	if err := source.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Get(t.Context(), client.Beginning); !errors.Is(err, stream.ErrGone) {
		t.Errorf("a deleted source: %v", err)
	}
}

func TestAppendErrors(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	s := create(t, c, "log", asText, "")
	ctx := t.Context()
	if _, err := s.Append(ctx, []byte("a"), client.AppendOptions{ContentType: asText, Seq: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		data string
		o    client.AppendOptions
		is   error
	}{
		{"a", client.AppendOptions{ContentType: asText, Seq: "b"}, stream.ErrSeqRegression},
		{"a", client.AppendOptions{ContentType: asJSON}, stream.ErrContentType},
		{"", client.AppendOptions{}, stream.ErrEmptyBody},
	} {
		if _, err := s.Append(ctx, []byte(bad.data), bad.o); !errors.Is(err, bad.is) {
			t.Errorf("%q %+v: %v", bad.data, bad.o, err)
		}
	}
	if _, err := s.AppendJSON(ctx); !errors.Is(err, stream.ErrEmptyArray) {
		t.Errorf("no messages: %v", err)
	}
	final, err := s.Append(ctx, []byte("z"), client.AppendOptions{ContentType: asText, Close: true})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.End(ctx); err != nil || again != final {
		t.Errorf("closed again at %s, %v", again, err)
	}
	_, err = s.Append(ctx, []byte("a"), client.AppendOptions{ContentType: asText})
	if closed, ok := errors.AsType[*client.ClosedError](err); !ok || closed.Final != final {
		t.Errorf("append to a closed stream: %v", err)
	}
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != 409 || e.Code != "stream_closed" || e.Header.Get("Stream-Next-Offset") != string(final) {
		t.Errorf("got %+v", e)
	}
	if _, err := s.Get(ctx, "x"); !errors.Is(err, stream.ErrOffsetMalformed) {
		t.Errorf("a malformed offset: %v", err)
	}
}

func TestBuckets(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	ctx := t.Context()
	const streams = 1002 // more than a page of the listing
	var want []string
	for i := range streams {
		id := fmt.Sprintf("s%04d", i)
		create(t, c, id, asText, "x")
		want = append(want, id)
	}
	create(t, c, "other", asText, "")
	var got []string
	for s, err := range c.Streams(ctx, "demo", "s") {
		if err != nil {
			t.Fatal(err)
		}
		if s.Tail != 1 || s.ContentType != asText || s.Status != "Open" {
			t.Fatalf("listed %+v", s)
		}
		got = append(got, s.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed %d streams, want %d", len(got), len(want))
	}
	if n, err := c.CountStreams(ctx, "demo"); n != streams+1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	for range c.Streams(ctx, "demo", "") {
		break
	}
	if err := c.DeleteBucket(ctx, "demo"); !errors.Is(err, stream.ErrBucketNotEmpty) {
		t.Errorf("delete a full bucket: %v", err)
	}
	if err := c.CreateBucket(ctx, "demo"); !errors.Is(err, stream.ErrBucketExists) {
		t.Errorf("create again: %v", err)
	}
	if err := c.CreateBucket(ctx, "gone"); err != nil {
		t.Error(err)
	}
	if err := c.DeleteBucket(ctx, "gone"); err != nil {
		t.Error(err)
	}
	if _, err := c.CountStreams(ctx, "gone"); !errors.Is(err, stream.ErrBucketNotFound) {
		t.Errorf("a deleted bucket: %v", err)
	}
	for _, err := range c.Streams(ctx, "gone", "") {
		if !errors.Is(err, stream.ErrBucketNotFound) {
			t.Errorf("list a deleted bucket: %v", err)
		}
	}
	for _, err := range []error{c.CreateBucket(ctx, "a/b"), c.DeleteBucket(ctx, strings.Repeat("a", 65))} {
		if !errors.Is(err, stream.ErrBucketName) {
			t.Errorf("a bad name: %v", err)
		}
	}
}
