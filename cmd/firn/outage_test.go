package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// bucket is an S3 store in memory that can be taken away.
type bucket struct {
	url string // for --cold

	mu   sync.Mutex    // serialises PUTs: the fake checks conditions and writes in two steps
	rw   sync.RWMutex  // guards away and hold
	away bool          // answers 503
	hold chan struct{} // not nil: GETs wait until it is closed
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request, store http.Handler) {
	b.rw.RLock()
	away, hold := b.away, b.hold
	b.rw.RUnlock()
	if hold != nil && r.Method == http.MethodGet {
		<-hold
	}
	if away {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method == http.MethodPut {
		b.mu.Lock()
		defer b.mu.Unlock()
	}
	store.ServeHTTP(w, r)
}

func (b *bucket) setAway(away bool) {
	b.rw.Lock()
	defer b.rw.Unlock()
	b.away = away
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), "archive"); err != nil {
		t.Fatal(err)
	}
	store := gofakes3.New(backend).Server()
	b := new(bucket)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.ServeHTTP(w, r, store) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	b.url = "s3://archive/firn?region=us-east-1&path_style=true&endpoint=" + srv.URL
	return b
}

// args are the flags of a server on the bucket, whose calls give up soon.
func (b *bucket) args(t *testing.T) []string {
	return []string{"--cold", b.url, "--cold.request-timeout", "300ms",
		"--cold.access-key-id-file", write(t, "key"), "--cold.secret-access-key-file", write(t, "secret")}
}

// The bucket may be away when a server starts again, and while it works. Then what
// is hot is served, and what is cold is refused for as long as that lasts.
func TestBucketAway(t *testing.T) {
	b, dir := newBucket(t), t.TempDir()
	s := start(t, dir, b.args(t)...)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/old", `[1]`, asJSON)
	s.mustFirn("seal", "demo/old")
	s.mustFirn("evict", "demo/old")
	s.mustStop()

	b.setAway(true)
	s = start(t, dir, append(b.args(t), "--seal.max-age", "1s")...)
	s.must(201, "PUT", "/ds/demo/new", `[2]`, asJSON)
	if a := s.must(200, "GET", "/ds/demo/new", ""); a.body != "[2]" {
		t.Errorf("hot read gave %s", a.body)
	}
	if a := s.must(503, "GET", "/ds/demo/old", ""); !strings.Contains(a.body, "cold_unavailable") || a.Header.Get("Retry-After") == "" {
		t.Errorf("cold read: %s %v", a.body, a.Header)
	}
	if o := s.firn("seal", "demo/new"); o.code != exitUnavailable {
		t.Errorf("seal: exit code %d, %s", o.code, o.stderr)
	}
	if o := s.firn("stream", "cat", "demo/old"); o.code != exitUnavailable {
		t.Errorf("cat: exit code %d, %s", o.code, o.stderr)
	}
	// It is told, but no reason to send clients elsewhere.
	until(t, "the outage is told", func() bool {
		out := s.mustFirn("health")
		return strings.HasPrefix(out, "ready\n") && strings.Contains(out, "the compactor fails since") &&
			strings.Contains(out, "calls to the object store fail since")
	})

	b.setAway(false)
	until(t, "sealing works again", func() bool { return s.firn("seal", "demo/new").code == exitOK })
	until(t, "cold reads work again", func() bool { return s.do("GET", "/ds/demo/old", "").StatusCode == 200 })
	s.mustStop()
}

// A data directory that has never owned the storage does not start without it: what
// it would serve might not be all.
func TestBucketAwayAtFirstStart(t *testing.T) {
	b, dir := newBucket(t), filepath.Join(t.TempDir(), "data")
	b.setAway(true)
	refused(t, exitUnavailable, "claim cold storage", append(b.args(t), "--data-dir", dir)...)
	b.setAway(false)
	s := start(t, dir, b.args(t)...)
	s.mustStop()
}
