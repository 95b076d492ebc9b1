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

// Names that only firn's two surfaces spell lead to a stream.
func TestNames(t *testing.T) {
	c := connect(t, clienttest.Serve(t, clienttest.Options{}).URL(), client.Options{})
	ctx := t.Context()
	for _, n := range []stream.Name{{Bucket: "demo", ID: "ä b+c%?#"}, {Bucket: "default", ID: "a/b c/d"}, {Bucket: "default", ID: "streams"}} {
		s := c.Stream(n)
		if made, err := s.Create(ctx, client.CreateOptions{}); err != nil || !made.New {
			t.Errorf("%s: %+v, %v", n, made, err)
		}
		byURL, err := client.NewStream(s.URL(), client.Options{HTTP: clienttest.NewHTTP(t)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := byURL.Append(ctx, []byte("x"), client.AppendOptions{}); err != nil {
			t.Errorf("%s: %v", s.URL(), err)
		}
		fork := c.Stream(stream.Name{Bucket: "demo", ID: "fork"})
		if _, err := fork.Create(ctx, client.CreateOptions{Fork: &client.Fork{Source: s}}); err != nil {
			t.Errorf("fork of %s: %v", n, err)
		}
		got, _ := collect(t, fork.Read(ctx, ""), nil)
		same(t, got, "x")
		for _, s := range []*client.Stream{fork, s} {
			if err := s.Delete(ctx); err != nil {
				t.Errorf("delete %s: %v", s.URL(), err)
			}
		}
	}
}

func testCreate(t *testing.T, w *world) {
	ctx := t.Context()
	for _, id := range []string{"log", "ä b+c%?#"} {
		s := w.stream(t, id)
		if made, err := s.Create(ctx, client.CreateOptions{}); err != nil || !made.New || made.ContentType != asBinary || made.Closed {
			t.Errorf("%s: %+v, %v", id, made, err)
		}
		if made, err := s.Create(ctx, client.CreateOptions{}); err != nil || made.New {
			t.Errorf("%s again: %+v, %v", id, made, err)
		}
		_, err := s.Create(ctx, client.CreateOptions{ContentType: asJSON})
		w.refused(t, "of another type", err, 409, stream.ErrExists)
		if _, err := s.Append(ctx, []byte("x"), client.AppendOptions{}); err != nil {
			t.Errorf("%s: %v", s.URL(), err)
		}
		if err := s.Delete(ctx); err != nil {
			t.Errorf("delete %s: %v", id, err)
		}
		if _, err := s.Head(ctx); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("%s after delete: %v", id, err)
		}
		if err := s.Delete(ctx); !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("delete %s again: %v", id, err)
		}
	}

	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	for id, o := range map[string]client.CreateOptions{
		"ttl": {TTL: 59*time.Second + 1}, "at": {ExpiresAt: ends}, "closed": {Closed: true, Data: []byte("all")},
	} {
		s := w.stream(t, id)
		made, err := s.Create(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := s.Head(ctx)
		if err != nil || info.TTL != map[string]time.Duration{"ttl": time.Minute}[id] || info.Closed != (id == "closed") ||
			made.Closed != info.Closed || info.ExpiresAt.Equal(ends) != (id == "at") || info.Tail != made.Tail || info.Snapshot != "" {
			t.Errorf("%s: %+v, %+v, %v", id, made, info, err)
		}
		if again, err := s.Create(ctx, o); err != nil || again.New {
			t.Errorf("%s again: %+v, %v", id, again, err)
		}
	}
}

// Creating is repeated: that the first attempt was done is no conflict.
func testCreateLost(t *testing.T, w *world) {
	proxy := clienttest.NewProxy(t, w.URL())
	proxy.Fail(in(clienttest.Lose))
	s := w.at(t, proxy.URL(), "log", client.Options{})
	made, err := s.Create(t.Context(), client.CreateOptions{ContentType: asJSON, Data: []byte("[1,2]")})
	if err != nil || made.New {
		t.Errorf("got %+v, %v", made, err)
	}
	got, _ := collect(t, s.Read(t.Context(), ""), nil)
	same(t, got, "1\n2\n")
}

func testFork(t *testing.T, w *world) {
	ctx := t.Context()
	source := w.create(t, "source ü", asJSON, `[1,2]`)
	at, err := source.AppendJSON(ctx, []int{3}, "four")
	if err != nil {
		t.Fatal(err)
	}
	add(t, source, asJSON, `[5,6]`)
	var forks []*client.Stream
	for i, f := range []struct {
		fork client.Fork
		want string
	}{
		{client.Fork{Source: source}, "1\n2\n[3]\n\"four\"\n5\n6\n"},
		{client.Fork{Source: source, Offset: at}, "1\n2\n[3]\n\"four\"\n"},
		{client.Fork{Source: source, Offset: at, Sub: 1}, "1\n2\n[3]\n\"four\"\n5\n"},
	} {
		s := w.stream(t, fmt.Sprint("fork", i))
		made, err := s.Create(ctx, client.CreateOptions{Fork: &f.fork})
		if err != nil || made.ContentType != asJSON {
			t.Fatalf("fork %d: %+v, %v", i, made, err)
		}
		got, last := collect(t, s.Read(ctx, client.Beginning), nil)
		same(t, got, f.want)
		if last.Next != made.Tail {
			t.Errorf("fork %d ends at %s, was created up to %s", i, last.Next, made.Tail)
		}
		add(t, s, asJSON, `"own"`)
		got, _ = collect(t, s.Read(ctx, made.Tail), nil)
		same(t, got, "\"own\"\n")
		forks = append(forks, s)
	}
	if err := source.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := source.Get(ctx, client.Beginning); !errors.Is(err, stream.ErrGone) {
		t.Errorf("a deleted source: %v", err)
	}
	if err := w.Crash(func() {}); err != nil {
		t.Fatal(err)
	}
	got, _ := collect(t, forks[1].Read(ctx, ""), nil)
	same(t, got, "1\n2\n[3]\n\"four\"\n\"own\"\n")
	_, err = w.stream(t, "orphan").Create(ctx, client.CreateOptions{Fork: &client.Fork{Source: w.stream(t, "absent")}})
	w.refused(t, "a fork of nothing", err, 404, stream.ErrForkSourceNotFound)
}

func testAppendErrors(t *testing.T, w *world) {
	s := w.create(t, "log", asText, "")
	ctx := t.Context()
	if _, err := s.Append(ctx, []byte("a"), client.AppendOptions{ContentType: asText, Seq: "b"}); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct {
		data   string
		o      client.AppendOptions
		status int
		is     error
	}{
		{"a", client.AppendOptions{ContentType: asText, Seq: "b"}, 409, stream.ErrSeqRegression},
		{"a", client.AppendOptions{ContentType: asJSON}, 409, stream.ErrContentType},
		{"", client.AppendOptions{}, 400, stream.ErrEmptyBody},
	} {
		_, err := s.Append(ctx, []byte(bad.data), bad.o)
		w.refused(t, fmt.Sprintf("%q %+v", bad.data, bad.o), err, bad.status, bad.is)
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
	_, err = s.Get(ctx, "x")
	w.refused(t, "a malformed offset", err, 400, stream.ErrOffsetMalformed)
	absent := w.stream(t, "absent")
	for name, err := range map[string]error{
		"append": second(absent.Append(ctx, []byte("a"), client.AppendOptions{})), "get": second(absent.Get(ctx, "")),
		"head": second(absent.Head(ctx)), "end": second(absent.End(ctx)), "delete": absent.Delete(ctx),
	} {
		if !errors.Is(err, stream.ErrNotFound) {
			t.Errorf("%s of no stream: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Errors tell all that the server said.
func testErrorCodes(t *testing.T, w *world) {
	s := w.create(t, "log", asText, "")
	final, err := s.End(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Append(t.Context(), []byte("a"), client.AppendOptions{ContentType: asText})
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Status != 409 || e.Code != "stream_closed" || e.Detail == "" || e.Header.Get("Stream-Next-Offset") != string(final) {
		t.Errorf("got %+v", e)
	}
}

// A long stream is what was written, read from everywhere.
func testRead(t *testing.T, w *world) {
	ctx := t.Context()
	want := bulk(3 << 20)
	lines := strings.SplitAfter(want, "\n")
	lines = lines[:len(lines)-1] // what follows the last line end is none
	for _, contentType := range []string{asJSON, asBinary, asText} {
		s := w.create(t, strings.ReplaceAll(contentType, "/", "-"), contentType, "")
		type place struct {
			at     client.Offset
			behind int
		}
		places := []place{{client.Beginning, 0}}
		for at, behind := 0, 0; at < len(lines); {
			n := min(len(lines)-at, len(lines)/7)
			piece := strings.Join(lines[at:at+n], "")
			if behind += len(piece); contentType == asJSON {
				piece = "[" + strings.Join(lines[at:at+n], ",") + "]"
			}
			// A hot tier may be too small for all of it, for a while.
			tail, err := s.Append(ctx, []byte(piece), client.AppendOptions{ContentType: contentType})
			for errors.Is(err, stream.ErrHotFull) && ctx.Err() == nil {
				tail, err = s.Append(ctx, []byte(piece), client.AppendOptions{ContentType: contentType})
			}
			if err != nil {
				t.Fatal(err)
			}
			places = append(places, place{tail, behind})
			at += n
		}
		for _, crashed := range []bool{false, true} {
			for _, p := range places {
				got, last := collect(t, s.Read(ctx, p.at), nil)
				same(t, got, want[p.behind:])
				if !last.UpToDate || last.Closed || last.Next != places[len(places)-1].at || last.ContentType != contentType {
					t.Errorf("from %s to %s, up to date: %v", p.at, last.Next, last.UpToDate)
				}
			}
			if crashed {
				break
			}
			if err := w.Crash(func() {}); err != nil {
				t.Fatal(err)
			}
		}
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
