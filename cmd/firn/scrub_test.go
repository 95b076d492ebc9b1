package main

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"firn/internal/admin"
)

// A file of the archive is damaged under a server, which tells and repairs it; then one
// that has no hot copy any more.
func TestServerReadsItsObjectsAgain(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, "--data-dir", dir, "--hot.min-free-bytes=0", "--scrub.period=1s", "--sweep.grace=1s")
	must := func(method, url, body string) string {
		t.Helper()
		a, err := request(method, url, body, "Content-Type: application/json")
		if err != nil || a.StatusCode > 299 {
			t.Fatalf("%s %s: %v %v", method, url, a.Response, err)
		}
		return a.body
	}
	must(http.MethodPut, p.url+"/ds/demo", "")
	must(http.MethodPut, p.url+"/ds/demo/orders", `[{"n":1}]`)
	seal := p.admin + "/admin/streams/demo/orders/"
	must(http.MethodPost, seal+"seal", "")
	until := func(what string, ok func() bool) {
		t.Helper()
		deadline, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
		defer tick.Stop()
		for !ok() {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("never: %s", what)
			}
		}
	}
	flip := func(key string) []byte {
		t.Helper()
		was, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		bad := append([]byte(nil), was...)
		bad[5] ^= 1
		if err := os.WriteFile(key, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		return was
	}
	first := objects(t, dir, ".ndjson.zst")[0]
	flip(first)
	until("the object is repaired", func() bool {
		return strings.Contains(must(http.MethodGet, p.admin+"/metrics", ""), `firn_compactor_rewrites_total{reason="repair",result="done"} 1`)
	})
	if n := strings.Count(p.log.String(), `msg="object is damaged"`); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	until("the damaged object is removed", func() bool {
		keys := objects(t, dir, ".ndjson.zst")
		return len(keys) == 1 && keys[0] != first
	})

	must(http.MethodPost, seal+"evict", "")
	second := objects(t, dir, ".ndjson.zst")[0]
	was := flip(second)
	notes := func() []string {
		var a admin.Readiness
		if err := json.Unmarshal([]byte(must(http.MethodGet, p.admin+"/readyz", "")), &a); err != nil || !a.Ready {
			t.Fatalf("%+v, %v", a, err)
		}
		return a.Notes
	}
	until("a note tells", func() bool {
		n := notes()
		return len(n) == 1 && n[0] == "1 objects are damaged or missing, see firn verify"
	})
	if m := must(http.MethodGet, p.admin+"/metrics", ""); !strings.Contains(m, `firn_scrub_damaged_objects{damage="damaged"} 1`) {
		t.Error("the metric does not tell")
	}
	if v := must(http.MethodPost, p.admin+"/admin/verify", ""); !strings.Contains(v, "object_damaged") {
		t.Errorf("verify says %s", v)
	}
	if err := os.WriteFile(second, was, 0o600); err != nil {
		t.Fatal(err)
	}
	must(http.MethodPost, p.admin+"/admin/verify", "") // which has it looked at again
	until("the note goes", func() bool { return len(notes()) == 0 })
	if body := must(http.MethodGet, p.url+"/ds/demo/orders?offset=-1", ""); body != `[{"n":1}]` {
		t.Errorf("the stream reads %s", body)
	}
}
