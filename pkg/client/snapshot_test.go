package client_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"firn/pkg/client"
	"firn/pkg/stream"
)

// A snapshot that is replaced between the redirect and its answer is not relied on: the
// latest one is asked for again (X§2.2). That there is none at all is an answer.
func TestSnapshotIsReplacedMeanwhile(t *testing.T) {
	to := func(offset string) reply { return reply{status: 307, header: "Location: /s/snapshot/" + offset} }
	gone := reply{status: 404, body: `{"code":"snapshot_not_found"}`}
	s, st := serve(t, client.Options{}, to("3"), gone, to("5%2F6"), gone, to("9"),
		reply{status: 200, header: "Content-Type: a/b\nStream-Snapshot-Offset: 9", body: "state"})
	sn, err := st.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer sn.Close()
	if body, err := io.ReadAll(sn); string(body) != "state" || err != nil || sn.Offset != "9" || sn.ContentType != "a/b" {
		t.Errorf("got %q of %s at %s, %v", body, sn.ContentType, sn.Offset, err)
	}
	want := "GET /s/snapshot\nGET /s/snapshot/3\nGET /s/snapshot\nGET /s/snapshot/5%2F6\nGET /s/snapshot\nGET /s/snapshot/9"
	if s.said() != want {
		t.Errorf("asked\n%s\nwant\n%s", s.said(), want)
	}

	s, st = serve(t, client.Options{Retry: client.Retry{First: time.Nanosecond}}, gone)
	if _, err := st.Snapshot(t.Context()); !errors.Is(err, stream.ErrSnapshotNotFound) || s.said() != "GET /s/snapshot" {
		t.Errorf("no snapshot: %v, asked\n%s", err, s.said())
	}
}

// By itself a reader waits with events, but for text, whose line ends they do not keep
// (X§3.3).
func TestWaitsWithEvents(t *testing.T) {
	for contentType, want := range map[string]string{
		"application/json":                "sse",
		"application/json; charset=utf-8": "sse",
		"application/octet-stream":        "sse",
		"image/png":                       "sse",
		"text/plain":                      "long-poll",
		"text/x-state; a=b":               "long-poll",
	} {
		s, st := serve(t, client.Options{}, page(contentType, "3", "", tail), reply{status: 404})
		if got := pages(t, st.Follow(t.Context(), "3")); got != "\"\" 3 up to date\nerror\n" {
			t.Errorf("%s: got\n%s", contentType, got)
		}
		if said := "GET /s?offset=3\nGET /s?live=" + want + "&offset=3"; s.said() != said {
			t.Errorf("%s: asked\n%s", contentType, s.said())
		}
	}
}
