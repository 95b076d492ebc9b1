package main

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const asJSON = "Content-Type: application/json"

func TestRestartKeepsData(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", "", asJSON)
	s.must(204, "POST", "/ds/demo/orders", `[{"id":1},{"id":2}]`, asJSON)
	s.mustFirn("seal", "demo/orders")
	s.must(204, "POST", "/ds/demo/orders", `{"id":3}`, asJSON)
	before := s.must(200, "GET", "/ds/demo/orders", "")
	s.mustStop()

	s = start(t, dir)
	after := s.must(200, "GET", "/ds/demo/orders", "")
	if after.body != `[{"id":1},{"id":2},{"id":3}]` || after.body != before.body {
		t.Errorf("before the restart %s, after it %s", before.body, after.body)
	}
	if b, a := before.Header.Get("Stream-Next-Offset"), after.Header.Get("Stream-Next-Offset"); a != b {
		t.Errorf("the tail was %s and is %s", b, a)
	}
	s.mustFirn("seal", "demo/orders")
	s.mustFirn("evict", "demo/orders")
	cold := s.must(200, "GET", "/ds/demo/orders", "")
	if cold.body != before.body || !strings.Contains(cold.Header.Get("Server-Timing"), "cold") {
		t.Errorf("cold read: %s, %q", cold.body, cold.Header.Get("Server-Timing"))
	}
	s.mustStop()
}

func TestStopDrains(t *testing.T) {
	s := start(t, t.TempDir())
	s.must(201, "PUT", "/v1/stream/a/b", "", "Content-Type: text/plain")

	resp, err := http.Get(s.url + "/v1/stream/a/b?offset=-1&live=sse")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := bufio.NewScanner(resp.Body)
	// The first event says that there is nothing; the reader then waits.
	for events.Scan() && events.Text() != "" {
	}
	poll := make(chan answer, 1)
	go func() {
		a, err := request("GET", s.url+"/v1/stream/a/b?offset=-1&live=long-poll", "")
		if err != nil {
			t.Error(err)
		}
		poll <- a
	}()
	until(t, "the long-poll waits", func() bool {
		return s.samples()[`firn_http_live_readers{kind="long-poll"}`] == 1
	})
	s.mustStop()

	if a := <-poll; a.Response == nil || a.StatusCode != http.StatusNoContent {
		t.Errorf("long-poll at the end: %+v", a)
	}
	var last string
	for events.Scan() {
		if strings.HasPrefix(events.Text(), "event: ") {
			last = events.Text()
		}
	}
	if last != "event: control" || events.Err() != nil {
		t.Errorf("last event is %q (%v), want a control event", last, events.Err())
	}
}

func TestServeRefuses(t *testing.T) {
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "first"))
	cold := "file://" + filepath.Join(dir, "first", "cold")

	refused(t, exitConflict, "in use by another process", "--data-dir", filepath.Join(dir, "first"))
	refused(t, exitConflict, "choose another prefix", "--data-dir", filepath.Join(dir, "second"), "--cold", cold)
	refused(t, exitConflict, "address already in use", "--data-dir", filepath.Join(dir, "third"), "--listen", strings.TrimPrefix(s.url, "http://"))
	s.mustStop()
	refused(t, exitConflict, "choose another prefix or the data directory that belongs to it",
		"--data-dir", filepath.Join(dir, "empty"), "--cold", cold)

	refused(t, exitUsage, "did you mean", "--data-dir", dir, "--config", write(t, "hot:\n  max_byte: 1GiB\n"))
	refused(t, exitUsage, "no such file", "--config", filepath.Join(dir, "absent.yaml"))
	refused(t, exitUsage, "admin.token", "--data-dir", dir, "--admin-listen", "0.0.0.0:0")
	refused(t, exitUsage, "firn --help", "--no-such-flag")

	// What refused is not in the way.
	s = start(t, filepath.Join(dir, "first"))
	s.mustStop()
}

// A copy of a data directory must not write beside the original.
func TestServeRefusesOldCopy(t *testing.T) {
	dir := t.TempDir()
	cold := "file://" + filepath.Join(dir, "cold")
	s := start(t, filepath.Join(dir, "data"), "--cold", cold)
	s.mustStop()
	if err := os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "data"))); err != nil {
		t.Fatal(err)
	}
	s = start(t, filepath.Join(dir, "data"), "--cold", cold)
	s.mustStop()
	refused(t, exitConflict, "a copy or a restored backup", "--data-dir", filepath.Join(dir, "copy"), "--cold", cold)
}

// A data directory with sealed bytes must not go on with another prefix: they would
// read as missing.
func TestServeRefusesAnotherPrefix(t *testing.T) {
	dir := t.TempDir()
	data, other := filepath.Join(dir, "data"), "file://"+filepath.Join(dir, "other")
	s := start(t, data)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[{"id":1}]`, asJSON)
	s.mustFirn("seal", "demo/orders")
	s.mustStop()
	refused(t, exitConflict, "is it the right bucket and prefix?", "--data-dir", data, "--cold", other)
	s = start(t, data)
	s.must(204, "DELETE", "/ds/demo/orders", "")
	s.mustStop()
}

// Without cold storage nothing is sealed, but snapshots work; when storage is added
// later it is sealed, and the snapshot made before is still there.
func TestColdAddedLater(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--cold", "none")
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", "", asJSON)
	s.must(204, "POST", "/ds/demo/orders", `[{"id":1},{"id":2}]`, asJSON)
	tail := s.must(200, "HEAD", "/ds/demo/orders", "").Header.Get("Stream-Next-Offset")
	s.must(204, "PUT", "/ds/demo/orders/snapshot/"+tail, `{"orders":2}`, asJSON)
	s.must(204, "POST", "/ds/demo/orders", `{"id":3}`, asJSON)
	if o := s.firn("seal", "demo/orders"); o.code != exitConflict || !strings.Contains(o.stderr, "no cold storage") {
		t.Errorf("seal without cold storage: exit code %d, %s", o.code, o.stderr)
	}
	bootstrapped := func() {
		t.Helper()
		b := s.must(200, "GET", "/ds/demo/orders/bootstrap", "")
		if !strings.Contains(b.body, `{"orders":2}`) {
			t.Errorf("the bootstrap has no snapshot:\n%s", b.body)
		}
	}
	bootstrapped()
	s.mustStop()

	s = start(t, dir, "--seal.max-age", "1s")
	bootstrapped()
	cold := filepath.Join(dir, "cold")
	until(t, "the old bytes are sealed", func() bool { return len(objects(t, cold, ".ndjson.zst")) > 0 })
	s.mustFirn("seal", "demo/orders")
	s.mustFirn("evict", "demo/orders")
	if got := s.must(200, "GET", "/ds/demo/orders?offset="+tail, ""); got.body != `[{"id":3}]` {
		t.Errorf("cold read gave %s", got.body)
	}
	bootstrapped()
	s.mustStop()
}

// write makes a file.
func write(t *testing.T, text string) (name string) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
