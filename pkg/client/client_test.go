package client_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"firn/pkg/client"
	"firn/pkg/stream"
)

func TestURLs(t *testing.T) {
	c, err := client.New("http://h:1/root/", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[stream.Name]string{
		{Bucket: "demo", ID: "orders"}:       "http://h:1/root/ds/demo/orders",
		{Bucket: "demo", ID: "ä b+c%?#"}:     "http://h:1/root/ds/demo/%C3%A4%20b+c%25%3F%23",
		{Bucket: "default", ID: "a/b c/d"}:   "http://h:1/root/v1/stream/a/b%20c/d",
		{Bucket: "default", ID: "streams"}:   "http://h:1/root/v1/stream/streams",
		{Bucket: "default", ID: "bootstrap"}: "http://h:1/root/ds/default/bootstrap",
	} {
		if got := c.Stream(n).URL(); got != want {
			t.Errorf("%s is %s, want %s", n, got, want)
		}
	}
	for _, url := range []string{"127.0.0.1:4437", "ftp://x", "http://", "http://x/?a=b", "http://x/#a"} {
		if _, err := client.New(url, client.Options{}); !errors.Is(err, client.ErrURL) {
			t.Errorf("server %s: %v", url, err)
		}
		if _, err := client.NewStream(url, client.Options{}); !errors.Is(err, client.ErrURL) && !strings.HasSuffix(url, "?a=b") {
			t.Errorf("stream %s: %v", url, err)
		}
	}
	if c, err := client.New("", client.Options{}); err != nil || !strings.HasPrefix(c.Stream(stream.Name{Bucket: "demo", ID: "x"}).URL(), client.DefaultURL+"/ds/") {
		t.Errorf("no URL: %v", err)
	}
}

// Any URL is a stream's, also one with parameters of its own.
func TestForeignURLs(t *testing.T) {
	s, st := serve(t, client.Options{Header: map[string][]string{"authorization": {"Bearer x"}}}, page("text/plain", "7", "x", ""))
	signed, err := client.NewStream(st.URL()+"/a%2Fb/?token=t%20u", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(signed.Get(t.Context(), "")), second(signed.Get(t.Context(), "a b&c")), second(signed.Head(t.Context())),
		second(st.Get(t.Context(), client.Now)), second(st.Create(t.Context(), client.CreateOptions{})),
		signed.DeleteSnapshot(t.Context(), "a b/c"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := `GET /s/a%2Fb/?token=t%20u&offset=-1
GET /s/a%2Fb/?token=t%20u&offset=a+b%26c
HEAD /s/a%2Fb/?token=t%20u
GET /s?offset=now
PUT /s
DELETE /s/a%2Fb/snapshot/a%20b%2Fc?token=t%20u`
	if s.said() != want {
		t.Errorf("asked\n%s\nwant\n%s", s.said(), want)
	}
}

func second[T any](_ T, err error) error { return err }

func TestErrors(t *testing.T) {
	as := func(is func(error) bool) func(error) bool { return is }
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	for _, c := range []struct {
		status int
		header string
		body   string
		means  func(error) bool
	}{
		{404, "", `{"code":"stream_not_found"}`, is(stream.ErrNotFound)},
		{404, "", `{"code":"bucket_not_found"}`, is(stream.ErrBucketNotFound)},
		{404, "", ``, is(stream.ErrNotFound)},
		{410, "", ``, is(stream.ErrGone)},
		{410, "", `{"code":"stream_deleted"}`, is(stream.ErrGone)},
		{410, "Stream-Earliest-Offset: 5", ``, as(func(err error) bool {
			e, ok := errors.AsType[*client.TrimmedError](err)
			return ok && e.Earliest == "5"
		})},
		{409, "Stream-Closed: TRUE\nStream-Next-Offset: 8", ``, as(func(err error) bool {
			e, ok := errors.AsType[*client.ClosedError](err)
			return ok && e.Final == "8"
		})},
		{409, "Producer-Expected-Seq: 2\nProducer-Received-Seq: 4", `conflict`, as(func(err error) bool {
			e, ok := errors.AsType[*stream.SeqGapError](err)
			return ok && *e == stream.SeqGapError{Expected: 2, Received: 4}
		})},
		{403, "Producer-Epoch: 7", ``, as(func(err error) bool {
			e, ok := errors.AsType[*stream.StaleEpochError](err)
			return ok && e.Current == 7
		})},
		{409, "", `{"code":"content_type_mismatch"}`, is(stream.ErrContentType)},
		{503, "", `{"code":"cold_unavailable","detail":"cold storage is unavailable"}`, is(stream.ErrColdUnavailable)},
		{503, "", `{"code":"stopping"}`, is(stream.ErrUnavailable)},
		{403, "", ``, as(func(err error) bool { return errors.Unwrap(err) == nil })},
		{502, "", `<html>`, as(func(err error) bool { return errors.Unwrap(err) == nil })},
	} {
		_, st := serve(t, client.Options{}, reply{status: c.status, header: c.header + "\nRetry-After: 2\nX-Id: 9", body: c.body})
		_, err := st.Get(t.Context(), "")
		e, ok := err.(*client.Error)
		if !ok || e.Status != c.status || e.RetryAfter != 2*time.Second || e.Header.Get("X-Id") != "9" || e.Error() == "" || !c.means(err) {
			t.Errorf("%d %s %s: %v", c.status, c.header, c.body, err)
		}
	}
	long := strings.Repeat("é", 150)
	for _, c := range []struct{ header, body, says string }{
		{"Content-Type: text/plain; charset=utf-8", " Sequence conflict\nmore", "Sequence conflict (409)"},
		{"Content-Type: text/plain", long, long[:200] + " (409)"},
		{"Content-Type: text/plain", "", "server answered 409 Conflict"},
		{"Content-Type: text/html", "<html>", "server answered 409 Conflict"},
		{"Content-Type: application/problem+json", `{"code":"stream_exists","detail":"it is there"}`, "it is there (409 stream_exists)"},
	} {
		_, st := serve(t, client.Options{}, reply{status: 409, header: c.header, body: c.body})
		if _, err := st.Get(t.Context(), ""); err == nil || err.Error() != c.says {
			t.Errorf("%s %q: %v", c.header, c.body, err)
		}
	}
	st, err := client.NewStream("http://127.0.0.1:1/s", client.Options{Retry: client.Retry{GiveUp: -1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Head(t.Context()); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestHead(t *testing.T) {
	_, st := serve(t, client.Options{}, page("application/json", "8", "", "Stream-Closed: true\nStream-Snapshot-Offset: 4\nStream-TTL: 90\nStream-Expires-At: 2030-01-02T03:04:05Z"))
	info, err := st.Head(t.Context())
	want := client.Info{
		ContentType: "application/json", Tail: "8", Closed: true, TTL: 90 * time.Second,
		ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Snapshot: "4",
	}
	if err != nil || info != want {
		t.Errorf("got %+v, %v", info, err)
	}
	for _, more := range []string{"Stream-TTL: soon", "Stream-Expires-At: never"} {
		_, st := serve(t, client.Options{}, page("text/plain", "8", "", more))
		if _, err := st.Head(t.Context()); !errors.Is(err, client.ErrAnswer) {
			t.Errorf("%s: %v", more, err)
		}
	}
}
