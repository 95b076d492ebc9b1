package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server is killed, its disk is gone. All that was copied, and all that was sealed
// since, is served again.
func TestDiskLost(t *testing.T) {
	for name, cold := range map[string]func(t *testing.T) []string{
		"folder": func(t *testing.T) []string { return []string{"--cold", "file://" + t.TempDir()} },
		"bucket": func(t *testing.T) []string { return newBucket(t).args(t) },
	} {
		t.Run(name, func(t *testing.T) { loseDisk(t, cold(t)) })
	}
}

func loseDisk(t *testing.T, cold []string) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, append(cold, "--data-dir="+dir, "--hot.min-free-bytes=0", "--hot.memtable-bytes=1MiB")...)
	s := &server{t: t, url: p.url, admin: p.admin}
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[{"n":1}]`, asJSON)
	s.mustFirn("seal", "demo/orders")
	s.mustFirn("evict", "demo/orders")
	s.must(200, "POST", "/ds/demo/orders", `{"n":2}`, asJSON, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0")
	s.must(201, "PUT", "/ds/demo/fork", `{"n":3}`, asJSON, "Stream-Forked-From: /ds/demo/orders")
	old := s.must(200, "GET", "/ds/demo/orders", "")
	if out := s.mustFirn("backup"); !strings.Contains(out, "is in the bucket") {
		t.Errorf("firn backup said %q", out)
	}
	s.must(204, "POST", "/ds/demo/orders", `{"lost":true}`, asJSON)
	lost := s.must(200, "HEAD", "/ds/demo/orders", "").Header.Get("Stream-Next-Offset")
	s.must(201, "PUT", "/ds/demo/young", `[{"sealed":true}]`, asJSON)
	s.mustFirn("seal", "demo/young")
	p.signal(os.Kill)
	p.end()

	again := append([]string{"rebuild", "--data-dir", dir}, cold...)
	if o := firn(nil, again...); o.code != exitConflict || !strings.Contains(o.stderr, "not empty") {
		t.Errorf("over a store: %+v", o)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if o := firn(nil, again...); o.code != exitConflict || !strings.Contains(o.stderr, "may still be running") {
		t.Errorf("just after the server: %+v", o)
	}
	o := firn(nil, append(again, "--take-over")...)
	if o.code != exitLoss || !strings.Contains(o.stdout, "demo/orders is there up to 16 ") || !strings.Contains(o.stdout, "demo/young") {
		t.Fatalf("rebuild: %+v", o)
	}
	if o := firn(nil, append([]string{"verify", "--data-dir", dir}, cold...)...); o.code != exitOK {
		t.Errorf("verify: %+v", o)
	}

	s = start(t, dir, cold...)
	for path, want := range map[string]string{
		"orders": `[{"n":1},{"n":2}]`, "fork": `[{"n":1},{"n":2},{"n":3}]`, "young": `[{"sealed":true}]`,
	} {
		if a := s.must(200, "GET", "/ds/demo/"+path, ""); a.body != want {
			t.Errorf("%s holds %s", path, a.body)
		}
	}
	// The producer goes on where the copy has it.
	s.must(204, "POST", "/ds/demo/orders", `{"n":2}`, asJSON, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0")
	s.must(200, "POST", "/ds/demo/orders", `{"n":4}`, asJSON, "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 1")
	a := s.must(200, "GET", "/ds/demo/orders?offset="+old.Header.Get("Stream-Next-Offset"), "")
	if a.body != `[{"n":4}]` || a.Header.Get("Stream-Next-Offset") <= lost {
		t.Errorf("from the old tail: %s, then %s after %s", a.body, a.Header.Get("Stream-Next-Offset"), lost)
	}
	if a := s.must(400, "GET", "/ds/demo/orders?offset="+lost, ""); !strings.Contains(a.body, "offset_other_life") {
		t.Errorf("from a lost offset: %s", a.body)
	}
	// A tag of the old life matches nothing.
	s.must(200, "GET", "/ds/demo/orders", "", "If-None-Match: "+old.Header.Get("Etag"))
	s.mustStop()

	// It has stopped in order: nothing is lost with its disk.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	o = firn(nil, append(again, "-o", "json")...)
	if o.code != exitOK || !strings.Contains(o.stdout, `"complete":true`) {
		t.Fatalf("rebuild after a stop: %+v", o)
	}
	for line := range strings.Lines(o.stdout) {
		if err := json.Unmarshal([]byte(line), new(map[string]any)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	s = start(t, dir, cold...)
	if a := s.must(200, "GET", "/ds/demo/orders", ""); a.body != `[{"n":1},{"n":2},{"n":4}]` {
		t.Errorf("after the second rebuild there is %s", a.body)
	}
	s.mustStop()
}

// An archive in a third place, and a part of it restored into a fourth.
func TestArchiveAndRestore(t *testing.T) {
	cold, archive, other := []string{"--cold", "file://" + t.TempDir()}, "file://"+t.TempDir(), "file://"+t.TempDir()
	s := start(t, t.TempDir(), cold...)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[{"n":1}]`, asJSON)
	s.mustFirn("seal", "demo/orders")
	s.must(204, "POST", "/ds/demo/orders", `{"n":2}`, asJSON)
	s.must(201, "PUT", "/ds/demo/other", `[{"n":3}]`, asJSON)
	s.mustFirn("backup")
	if out := s.mustFirn(append([]string{"backup", "--to", archive}, cold...)...); !strings.Contains(out, "1, of which 1 were copied") {
		t.Errorf("firn backup --to said %q", out)
	}
	s.mustStop()

	dir := t.TempDir()
	restore := []string{"restore", "--from", archive, "--cold", other, "--data-dir", dir}
	o := firn(nil, append(restore, "--streams", "*/orders")...)
	if o.code != exitOK || !strings.Contains(o.stdout, "demo/orders is there up to 16 ") || strings.Contains(o.stdout, "demo/other") {
		t.Fatalf("restore: %+v", o)
	}
	if o := firn(nil, append(restore, "--data-dir", t.TempDir())...); o.code != exitConflict {
		t.Errorf("into a bucket in use: %+v", o)
	}
	s = start(t, dir, "--cold", other)
	if a := s.must(200, "GET", "/ds/demo/orders", ""); a.body != `[{"n":1},{"n":2}]` {
		t.Errorf("there is %s", a.body)
	}
	s.must(404, "GET", "/ds/demo/other", "")
	s.mustStop()
	for args, want := range map[string]int{
		"restore --from none":                                           exitUsage,
		"restore --from " + archive + " --streams a**":                  exitUsage,
		"restore --from file://" + t.TempDir():                          exitNotFound,
		"backup --to none":                                              exitUsage,
		"backup --cold none --to " + archive:                            exitConflict,
		"backup --to " + archive + " --cold " + "file://" + t.TempDir(): exitNotFound,
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if o := firn(nil, append(strings.Fields(args), "--data-dir", dir)...); o.code != want {
			t.Errorf("firn %s: %+v, want exit code %d", args, o, want)
		}
	}
}

func TestRebuildRefuses(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]int{
		"--cold none":                                    exitConflict,
		"--cold file://" + t.TempDir():                   exitNotFound,
		"--until yesterday --cold file://" + t.TempDir(): exitUsage,
	} {
		o := firn(nil, append([]string{"rebuild", "--data-dir", filepath.Join(dir, "data")}, strings.Fields(args)...)...)
		if o.code != want {
			t.Errorf("%s: %+v, want exit code %d", args, o, want)
		}
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		if left := objects(t, dir, ""); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	// Copies in the data directory would be lost with it.
	s := start(t, t.TempDir())
	if o := s.firn("backup"); o.code != exitConflict || !strings.Contains(o.stderr, "backup.interval") {
		t.Errorf("backup of a store without copies: %+v", o)
	}
	s.mustStop()
}
