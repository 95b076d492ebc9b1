package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a stream of a golden store: what a read of it gives, and where it ends.
type written struct {
	path, body string
	life, end  uint64
}

func (w written) next() string { return fmt.Sprintf("%016d_%016d", w.life, w.end) }

// What releases before this one have written opens for ever. The stores of
// testdata/store are never made again.
func TestStoreOfFormat1(t *testing.T) {
	dir := golden(t, "v1/data")
	s := start(t, dir)
	state := written{"/ds/demo/state", "[4]", 1796096885187, 8}
	reads(t, s, []written{
		{"/ds/demo/orders", `[{"id":1},{"id":2},{"id":3},{"id":4}]`, 1796096885005, 36},
		{"/ds/demo/branch", `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]`, 1796096885005, 45},
		{"/ds/demo/closed", "the end", 1796096885111, 7},
		{"/ds/demo/empty", "", 1796096885119, 0},
		{"/ds/demo/kept", "kept for a fork", 1796096885129, 15},
		{"/v1/stream/a/path", "flat line", 1796096885323, 9},
	}, state)
	writesOn(t, s)
	s.mustStop()
	if o := firn(nil, "verify", "--data-dir", dir); o.code != exitOK {
		t.Errorf("verify: %+v", o)
	}
}

func TestStoreOfFormat2(t *testing.T) {
	state := written{"/ds/demo/state", "[4]", 1796101425681, 8}
	streams := []written{
		{"/ds/demo/p1", "packed p1", 1796101419540, 9},
		{"/ds/demo/p3", "packed p3", 1796101419665, 9},
		{"/ds/demo/orders", `[{"id":1},{"id":2},{"id":3},{"id":4}]`, 1796101424746, 36},
		{"/ds/demo/branch", `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]`, 1796101424746, 45},
		{"/ds/demo/closed", "the end", 1796101425551, 7},
		{"/ds/demo/empty", "", 1796101425561, 0},
		{"/ds/demo/kept", "kept for a fork", 1796101425647, 15},
		{"/v1/stream/a/path", "flat line", 1796101425752, 9},
	}
	t.Run("directory", func(t *testing.T) {
		dir, cold := golden(t, "v2/data"), "file://"+golden(t, "v2/bucket")
		s := start(t, dir, "--cold", cold)
		reads(t, s, streams, state)
		writesOn(t, s)
		s.mustStop()
		if o := firn(nil, "verify", "--data-dir", dir, "--cold", cold); o.code != exitOK {
			t.Errorf("verify: %+v", o)
		}
	})
	t.Run("bucket", func(t *testing.T) {
		dir, cold := filepath.Join(t.TempDir(), "data"), "file://"+golden(t, "v2/bucket")
		if o := firn(nil, "rebuild", "--data-dir", dir, "--cold", cold, "--take-over"); o.code != exitLoss ||
			!strings.Contains(o.stdout, "demo/after is there up to 26") || strings.Contains(o.stdout, "lost:") {
			t.Fatalf("rebuild: %+v", o)
		}
		s := start(t, dir, "--cold", cold)
		for _, w := range streams {
			// A tail of before is where the stream goes on.
			a := s.must(200, "GET", w.path, "")
			if a.body != w.body || a.Header.Get("Stream-Next-Offset") <= w.next() {
				t.Errorf("%s: %q up to %s, want %q beyond %s", w.path, a.body, a.Header.Get("Stream-Next-Offset"), w.body, w.next())
			}
			s.must(200, "GET", w.path+"?offset="+w.next(), "")
		}
		writesOn(t, s)
		s.mustStop()
		if o := firn(nil, "verify", "--data-dir", dir, "--cold", cold); o.code != exitOK {
			t.Errorf("verify: %+v", o)
		}
	})
}

// golden is a copy of a golden store, for a test to use.
func golden(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/store/"+name)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reads holds streams, and one that begins with a snapshot, to what they were.
func reads(t *testing.T, s *server, streams []written, state written) {
	t.Helper()
	for _, w := range streams {
		if a := s.must(200, "GET", w.path, ""); a.body != w.body || a.Header.Get("Stream-Next-Offset") != w.next() {
			t.Errorf("%s: %q up to %s, want %q up to %s", w.path, a.body, a.Header.Get("Stream-Next-Offset"), w.body, w.next())
		}
	}
	at := written{life: state.life, end: 6}.next()
	if a := s.must(200, "GET", state.path+"?offset="+at, ""); a.body != state.body || a.Header.Get("Stream-Next-Offset") != state.next() {
		t.Errorf("after the snapshot: %q up to %s", a.body, a.Header.Get("Stream-Next-Offset"))
	}
	if a := s.must(200, "GET", state.path+"/snapshot/"+at, ""); a.body != "sum=6" {
		t.Errorf("the snapshot is %q", a.body)
	}
}

// writesOn goes on with a golden store: its producer, its subscription, what is deleted.
func writesOn(t *testing.T, s *server) {
	t.Helper()
	s.must(204, "POST", "/ds/demo/orders", `{"id":4}`, asJSON, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 1")
	s.must(200, "POST", "/ds/demo/orders", `{"id":6}`, asJSON, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 2")
	if a := s.must(200, "GET", "/v1/stream/__ds/subscriptions/pull", ""); !strings.Contains(a.body, `"path":"a/path"`) {
		t.Errorf("subscription: %s", a.body)
	}
	s.must(http.StatusGone, "GET", "/ds/demo/gone", "")
}
