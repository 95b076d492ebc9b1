package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"firn/pkg/client"
	"firn/pkg/stream"
)

// script is a server that answers what it is told and keeps what it was asked.
type script struct {
	status int
	header http.Header
	body   string
	asked  []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Method+" "+r.RequestURI)
	for name, values := range s.header {
		w.Header()[name] = values
	}
	w.WriteHeader(s.status)
	io.WriteString(w, s.body)
}

func serve(t *testing.T, s *script) *client.Client {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c, err := client.New(client.Options{URL: srv.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const life = "0000000000000007_000000000000000"

var orders = stream.Name{Bucket: "demo", ID: "orders"}

func header(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestRead(t *testing.T) {
	const asJSON = "application/json"
	at3 := stream.Offset{Life: 7, Position: 3}
	for _, c := range []struct {
		name    string
		from    stream.Offset
		header  http.Header
		body    string
		want    string
		invalid bool
	}{
		{"lines", stream.Offset{}, header("Content-Type", asJSON, "Stream-Next-Offset", life+"8"), `[1,[2],3]`, "1\n[2]\n3\n", false},
		{"bytes", at3, header("Content-Type", "text/plain", "Stream-Next-Offset", life+"6"), "[1]", "[1]", false},
		{"nothing", at3, header("Content-Type", asJSON, "Stream-Next-Offset", life+"3"), "[]", "", false},
		{"no offset", at3, header("Content-Type", "text/plain"), "x", "", true},
		{"skips", at3, header("Content-Type", "text/plain", "Stream-Next-Offset", life+"7"), "[1]", "", true},
		{"repeats", at3, header("Content-Type", asJSON, "Stream-Next-Offset", life+"4"), "[1]", "", true},
		{"not JSON", at3, header("Content-Type", asJSON, "Stream-Next-Offset", life+"5"), "[1", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{status: 200, header: c.header, body: c.body}
			p, err := serve(t, s).Read(t.Context(), orders, c.from)
			if errors.Is(err, client.ErrAnswer) != c.invalid || err == nil && string(p.Data) != c.want {
				t.Errorf("got %q, %v", p.Data, err)
			}
		})
	}
}

func TestURLs(t *testing.T) {
	s := &script{status: 200, header: header("Content-Type", "text/plain", "Stream-Next-Offset", life+"0", "Stream-Cursor", "9")}
	c := serve(t, s)
	for _, n := range []stream.Name{
		orders,
		{Bucket: "demo", ID: "ä b+c%?#"},
		{Bucket: "default", ID: "a/b c/d"},
		{Bucket: "default", ID: "streams"},
	} {
		if _, err := c.Read(t.Context(), n, stream.Offset{}); err != nil {
			t.Errorf("%s: %v", n, err)
		}
	}
	p, err := c.Poll(t.Context(), orders, stream.Offset{Life: 7}, "")
	if err == nil {
		_, err = c.Poll(t.Context(), orders, p.Next, p.Cursor)
	}
	if err != nil {
		t.Error(err)
	}
	want := []string{
		"GET /ds/demo/orders?offset=-1",
		"GET /ds/demo/%C3%A4%20b+c%25%3F%23?offset=-1",
		"GET /v1/stream/a/b%20c/d?offset=-1",
		"GET /v1/stream/streams?offset=-1",
		"GET /ds/demo/orders?live=long-poll&offset=" + life + "0",
		"GET /ds/demo/orders?cursor=9&live=long-poll&offset=" + life + "0",
	}
	if got := strings.Join(s.asked, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("asked\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func TestHead(t *testing.T) {
	s := &script{status: 200, header: header("Content-Type", "application/json", "Stream-Next-Offset", life+"8",
		"Stream-Closed", "true", "Stream-Snapshot-Offset", life+"4")}
	info, err := serve(t, s).Head(t.Context(), orders)
	if err != nil || info.Mode != stream.JSON || !info.Closed || info.Tail.Position != 8 || info.Snapshot == nil || info.Snapshot.Position != 4 {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		is     error
	}{
		{404, `{"code":"stream_not_found"}`, stream.ErrNotFound},
		{404, `{"code":"bucket_not_found"}`, stream.ErrBucketNotFound},
		{404, ``, stream.ErrNotFound},
		{410, `{"code":"stream_deleted"}`, stream.ErrGone},
		{503, `{"code":"cold_unavailable"}`, stream.ErrColdUnavailable},
		{503, `{"code":"stopping"}`, stream.ErrUnavailable},
		{502, `<html>`, nil},
	} {
		s := &script{status: c.status, body: c.body, header: header("Retry-After", "2")}
		cl := serve(t, s)
		_, err := cl.Read(t.Context(), orders, stream.Offset{})
		if c.body == "" {
			_, err = cl.Head(t.Context(), orders)
		}
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Status != c.status || e.RetryAfter != 2*time.Second || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
	s := &script{status: 410, body: `{"code":"offset_trimmed"}`, header: header("Stream-Earliest-Offset", life+"4")}
	_, err := serve(t, s).Read(t.Context(), orders, stream.Offset{})
	if e, ok := errors.AsType[*stream.TrimmedError](err); !ok || e.Earliest.Position != 4 {
		t.Errorf("trimmed: %v", err)
	}
	for _, url := range []string{"127.0.0.1:4437", "ftp://x", "http://", "http://x/?a=b"} {
		if _, err := client.New(client.Options{URL: url}); !errors.Is(err, client.ErrURL) {
			t.Errorf("%s: %v", url, err)
		}
	}
	c, err := client.New(client.Options{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.List(t.Context(), "demo", "", ""); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}

// An answer that was cut short is not taken for a shorter one.
func TestBrokenAnswer(t *testing.T) {
	s := &script{status: 200, body: "abc", header: header("Content-Type", "text/plain", "Content-Length", "9", "Stream-Next-Offset", life+"3")}
	if _, err := serve(t, s).Read(t.Context(), orders, stream.Offset{}); !errors.Is(err, client.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}
