//go:build integration

package trials_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWithoutAndWithBefore is about a server that has no object store, and one that
// finds what another release has left.
func TestWithoutAndWithBefore(t *testing.T) {
	t.Run("SC-5b4", noObjectStore)
	t.Run("SC-5ec", upgradeThatIsStopped)
}

// noObjectStore runs with the hot tier alone until its disk is at the reserve, and then
// gets an object store.
func noObjectStore(t *testing.T) {
	a := newArchive(t)
	m := equip(t, a, filepath.Join(disk(t, "64m"), "data"),
		"--hot.min-free-bytes", "16MiB", "--seal.max-age", "1s", "--hot.max-bytes", "1MiB", "--cold", "none")
	m.start()
	m.want(201, "PUT", "/ds/trial", "")
	l := open(m, 2)
	at := m.create("/ds/trial/snap", "text/plain", "before")
	m.append("/ds/trial/snap", "text/plain", "after")
	m.want(204, "PUT", "/ds/trial/snap/snapshot/"+at, "state", "Content-Type: text/x-state")
	l.append(90, 100_000) // 9 MB each
	check := func(when string) {
		t.Helper()
		l.holds(when)
		if got := m.want(200, "GET", "/ds/trial/snap/snapshot/"+at, "").body; got != "state" {
			t.Errorf("%s: the snapshot is %q", when, got)
		}
		if got := m.want(200, "GET", "/ds/trial/snap?offset="+at, "").body; got != "after" {
			t.Errorf("%s: after the snapshot comes %q", when, got)
		}
	}
	check("appended")
	// More than a bootstrap holds: it ends early and says so, and reading goes on there.
	e := l.entries[1]
	boot := m.want(200, "GET", e.path+"/bootstrap", "")
	if boot.upToDate() || len(boot.body) > 9<<20 {
		t.Errorf("a bootstrap of %d bytes says that it is up to date: %v", len(boot.body), boot.upToDate())
	}
	rest, err := e.read(boot.next())
	if err != nil || !strings.HasSuffix(e.record(), rest) {
		t.Errorf("after the bootstrap: %d bytes, %v", len(rest), err)
	}
	m.kill()
	m.start()
	check("killed")
	if said := m.readiness(); strings.Contains(said, "object") || strings.Contains(m.log.String(), "level=ERROR") {
		t.Errorf("without an object store it says %q", said)
	}
	m.until("appends are refused", func() bool {
		a, err := e.once(100_000)
		return err == nil && a.status == 503 && a.header.Get("Retry-After") != ""
	})
	check("at the reserve")

	m.kill()
	m.args = slices.Concat(m.args, []string{"--cold", a.at("firn")}) // the last one counts
	m.start()
	m.until("all is sealed and evicted", func() bool { return m.metric("firn_hot_bytes") < 2<<20 })
	l.append(3, 10_000)
	check("with an object store")
	l.settle()
}

// upgradeThatIsStopped starts on data of every earlier format, is killed within the
// start, and starts again.
func upgradeThatIsStopped(t *testing.T) {
	for _, format := range []string{"v1", "v2"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS("../../testdata/store/"+format)); err != nil {
				t.Fatal(err)
			}
			data, args := filepath.Join(dir, "data"), []string(nil)
			if format == "v2" {
				args = []string{"--cold", "file://" + filepath.Join(dir, "bucket")}
			}
			p := prepare(t, data, args...)
			logs := func() []string {
				all, err := filepath.Glob(filepath.Join(data, "hot", "*.log"))
				if err != nil {
					t.Fatal(err)
				}
				return all
			}
			for range scaled(5, 50) {
				before := logs()
				p.launch()
				p.until("it has begun a log", func() bool { return !slices.Equal(logs(), before) })
				p.kill()
			}
			p.start()
			if got := p.want(200, "GET", "/ds/demo/orders", "").body; got != `[{"id":1},{"id":2},{"id":3},{"id":4}]` {
				t.Errorf("orders: %s", got)
			}
			if got := p.want(200, "GET", "/ds/demo/branch", "").body; got != `[{"id":1},{"id":2},{"id":3},{"id":4},{"id":5}]` {
				t.Errorf("branch: %s", got)
			}
			p.kill()
			if code, out := p.run(append([]string{"verify", "--data-dir", data}, args...)...); code != 0 {
				t.Errorf("firn verify: exit code %d\n%s", code, out)
			}
		})
	}
}
