package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"firn/internal/verify"
)

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[{"n":1}]`, "Content-Type: application/json")
	s.mustFirn("seal", "demo/orders")

	var r verify.Report
	decode(t, s.mustFirn("verify", "--online", "-o", "json", "--rate", "1MiB"), &r)
	if !r.Clean() || r.Streams != 1 || r.Objects != 1 || r.ReadBytes < r.ObjectBytes {
		t.Errorf("online: %+v", r)
	}
	offline := []string{"verify", "--data-dir", dir}
	if o := firn(nil, offline...); o.code != exitConflict || !strings.Contains(o.stderr, "--online") {
		t.Errorf("beside the server: %+v", o)
	}
	s.mustStop()
	if o := firn(nil, offline...); o.code != exitOK || !strings.Contains(o.stdout, "problems         0") {
		t.Errorf("offline: %+v", o)
	}
	found := objects(t, dir, ".ndjson.zst")
	if err := os.Remove(found[0]); err != nil {
		t.Fatal(err)
	}
	o := firn(nil, append(offline, "-o", "json")...)
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.code != exitProblems || r.Found != 1 || r.Problems[0].Code != verify.CodeMissing {
		t.Errorf("with a lost object: %+v", o)
	}
}

func TestVerifyRefusesWhatIsNotThere(t *testing.T) {
	if o := firn(nil, "verify", "--data-dir", t.TempDir()); o.code != exitFailure {
		t.Errorf("an empty directory: %+v", o)
	}
	if o := firn([]string{"FIRN_ADMIN_URL=http://127.0.0.1:1"}, "verify", "--online"); o.code != exitUnavailable {
		t.Errorf("no server: %+v", o)
	}
}
