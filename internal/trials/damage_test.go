//go:build integration

package trials_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"firn/internal/faultproxy"
)

// TestDurability is about the data directory and what may befall it.
func TestDurability(t *testing.T) {
	t.Run("DU-f2a", flippedBitsInTables)
	t.Run("DU-7c4", tornAndDamagedLogs)
	t.Run("DU-de2", killsWhileLogsRoll)
	t.Run("DU-d1b", missingMetadata)
	t.Run("DU-f99", twoServers)
}

// hotFiles lists the files of the hot tier with a suffix, oldest first.
func (m *machine) hotFiles(suffix string) []string {
	m.t.Helper()
	all, err := filepath.Glob(filepath.Join(m.dir, "hot", "*"+suffix))
	if err != nil {
		m.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// snapshotOf is a copy of a directory, to begin again with.
func snapshotOf(t testing.TB, dir string) (restore func()) {
	t.Helper()
	saved := filepath.Join(t.TempDir(), "saved")
	if err := os.CopyFS(saved, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(saved)); err != nil {
			t.Fatal(err)
		}
	}
}

// checkpoint saves the data directory of a stopped machine with the owner record that
// belongs to it.
func (m *machine) checkpoint() (restore func()) {
	m.t.Helper()
	back := snapshotOf(m.t, m.dir)
	owner := m.archive.file("firn/owner")
	saved := filepath.Join(m.t.TempDir(), "owner")
	m.copyWithAttributes(owner, saved)
	return func() {
		m.t.Helper()
		back()
		m.copyWithAttributes(saved, owner)
	}
}

// copyWithAttributes copies a file of the S3 server, which keeps tags and checksums in
// attributes.
func (m *machine) copyWithAttributes(from, to string) {
	m.t.Helper()
	if out, err := exec.Command("cp", "-a", "--remove-destination", from, to).CombinedOutput(); err != nil {
		m.t.Fatalf("copy %s: %v %s", from, err, out)
	}
}

// flippedBitsInTables flips a byte of each table, one a round. A read may fail then,
// but what is read is right, and the other streams are served.
func flippedBitsInTables(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, "--seal.max-age", "1h", "--hot.cache-bytes", "1MiB", "--read.max-bytes", "64KiB")
	l := open(m, 4)
	l.append(scaled(60, 300), 20_000)
	m.until("a log is flushed", func() bool { return len(m.hotFiles(".sst")) > 0 })
	if code := m.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	restore := m.checkpoint()
	hurt := 0
	tables := m.hotFiles(".sst")
	rounds := scaled(4, 20)
	for i := range rounds {
		name := tables[i%len(tables)]
		b := readFile(t, name)
		b[len(b)*(i+1)/(rounds+2)] ^= 0xff
		writeFile(t, name, b)
		code, out := m.run(append([]string{"verify"}, m.args[1:]...)...)
		if code != 6 && code != 1 && code != 0 {
			t.Errorf("%s: firn verify: exit code %d\n%s", name, code, out)
		}
		m.start()
		broken := 0
		for _, e := range l.entries {
			got, status := e.prefix()
			want := e.record()
			switch {
			case status == 200 && got == want:
			case status >= 500 && strings.HasPrefix(want, got):
				broken++
			default:
				t.Errorf("%s: %s: %d, %d bytes of %d, equal so far: %v", name, e.path, status, len(got), len(want), strings.HasPrefix(want, got))
			}
		}
		if broken > 0 {
			hurt++
			if m.metric("firn_hot_corruptions_total") == 0 {
				t.Errorf("%s: damage is not counted", name)
			}
			if code == 0 {
				t.Errorf("%s: firn verify finds nothing", name)
			}
		}
		m.kill()
		restore()
	}
	if hurt == 0 {
		t.Error("no read met the damage")
	}
	m.start()
	l.settle()
}

// prefix reads until something fails, and returns what came before that.
func (e *entry) prefix() (string, int) {
	var all strings.Builder
	for offset := "-1"; ; {
		a, err := e.m.try("GET", e.path+"?offset="+offset, "")
		if err != nil {
			return all.String(), 599
		}
		if a.status != 200 {
			return all.String(), a.status
		}
		body, err := e.bytes(a.body)
		if err != nil {
			return all.String(), 0
		}
		all.WriteString(body)
		if a.upToDate() {
			return all.String(), 200
		}
		offset = a.next()
	}
}

// tornAndDamagedLogs kills a server and cuts, fills and damages its logs. What a crash
// can leave is taken; damage that would drop acknowledged bytes is refused.
func tornAndDamagedLogs(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, "--seal.max-age", "1h", "--hot.memtable-bytes", "16MiB")
	l := open(m, 2)
	l.append(10, 3000)
	m.kill()
	m.start() // a second log
	l.append(10, 3000)
	if err := l.entries[0].append(3000); err != nil { // alone in the last record of the log
		t.Fatal(err)
	}
	m.kill()
	restore := m.checkpoint()
	logs := m.hotFiles(".log")
	last := logs[len(logs)-1]
	whole := readFile(t, last)

	// (a) What was not synced when the power failed is cut off: here the record that
	// an append in flight would have left.
	writeFile(t, last, append(slices.Clone(whole), whole[:200]...))
	m.start()
	l.holds("a torn record at the end")
	m.kill()
	restore()
	// (c)
	writeFile(t, last, append(slices.Clone(whole), make([]byte, 70_000)...))
	m.start()
	l.holds("zeros at the end")
	m.kill()
	restore()

	// (a) A cut is what a power failure leaves of writes that nobody had acknowledged.
	for _, n := range []int{1, 7, 200} {
		writeFile(t, last, whole[:len(whole)-n])
		if code, out := m.attempt(); code != 0 {
			t.Errorf("cut by %d bytes: exit code %d\n%s", n, code, out)
		}
		lost := 0
		for _, e := range l.entries {
			got, status := e.prefix()
			if status != 200 || !strings.HasPrefix(e.record(), got) {
				t.Errorf("cut by %d bytes: %s reads %d with %d of %d bytes", n, e.path, status, len(got), len(e.record()))
			}
			if got != e.record() {
				lost++
			}
		}
		if lost > 1 {
			t.Errorf("cut by %d bytes: %d streams have lost their last append", n, lost)
		}
		m.kill()
		restore()
	}
	// (b), (d)
	for what, harm := range map[string]func(){
		"a flip in the middle": func() { b := slices.Clone(whole); b[len(b)/2] ^= 0xff; writeFile(t, last, b) },
		"a flip at the start":  func() { b := slices.Clone(whole); b[100] ^= 0xff; writeFile(t, last, b) },
	} {
		harm()
		if code, out := m.attempt(); code != 1 {
			t.Errorf("%s: exit code %d, want 1\n%s", what, code, out)
		} else {
			t.Logf("%s: %s", what, lastLine(out))
		}
		m.kill()
		restore()
	}
	m.start()
	l.settle()
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// killsWhileLogsRoll writes several logs between kills, and kills starts too.
func killsWhileLogsRoll(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, "--seal.max-age", "2s", "--hot.max-bytes", "4MiB", "--hot.hard-bytes", "1GiB")
	l := open(m, 4)
	for range scaled(4, 20) {
		l.append(25, 30_000) // 3 MiB, of memtables of 1 MiB
		m.kill()
		for range 3 {
			m.launch()
			m.kill() // while it recovers
		}
		m.start()
		l.holds("after a kill")
	}
	l.settle()
}

// missingMetadata takes away or damages what says what there is. Nothing is deleted
// for that.
func missingMetadata(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, "--seal.max-age", "1s", "--hot.max-bytes", "64KiB", "--sweep.grace", "1s", "--sweep.interval", "100ms")
	l := open(m, 3)
	l.append(10, 20_000)
	m.cool(l.paths()...)
	m.end()
	m.start() // which makes tables of what the logs hold
	if code := m.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	restore := m.checkpoint()
	owner := a.file("firn/owner")
	objects := a.objects(".zst")
	for what, c := range map[string]struct {
		harm func()
		code int
	}{
		"no data directory":        {func() { os.RemoveAll(m.dir) }, 5},
		"an empty data directory":  {func() { os.RemoveAll(m.dir); os.MkdirAll(m.dir, 0o755) }, 5},
		"no manifest":              {func() { remove(t, m.dir+"/hot", "MANIFEST") }, 1},
		"a damaged manifest":       {func() { damage(t, m.dir+"/hot", "MANIFEST") }, 0},
		"no marker":                {func() { remove(t, m.dir+"/hot", "marker.manifest") }, 1},
		"no tables":                {func() { remove(t, m.dir+"/hot", ".sst") }, 1},
		"no owner record":          {func() { os.Rename(owner, owner+"-away") }, 5},
		"an empty owner record":    {func() { writeFile(t, owner, nil) }, 5},
		"owner record of another":  {func() { os.Remove(owner); writeFile(t, owner, []byte(`{"version":1,"store":"x","fence":1}`)) }, 5},
		"owner record of tomorrow": {func() { os.Remove(owner); writeFile(t, owner, []byte(`{"version":2}`)) }, 5},
	} {
		c.harm()
		if code, out := m.attempt(); code == 0 || c.code != 0 && code != c.code {
			t.Errorf("%s: exit code %d, want %d\n%s", what, code, c.code, out)
		} else {
			t.Logf("%s: %s", what, lastLine(out))
		}
		if now := a.objects(".zst"); !slices.Equal(now, objects) {
			t.Errorf("%s: objects were deleted", what)
		}
		m.kill()
		os.Remove(owner + "-away")
		restore()
	}
	// Another prefix, and one that is not this server's.
	for _, prefix := range []string{"other", ""} {
		other := equip(t, a, m.dir, "--cold", a.at(prefix))
		other.refused(5, "cold storage")
	}
	m.start()
	l.settle()
}

func each(t *testing.T, dir, part string, f func(name string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(d.Name(), part) {
			f(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, dir, part string) {
	each(t, dir, part, func(name string) { os.Remove(name) })
}

func damage(t *testing.T, dir, part string) {
	each(t, dir, part, func(name string) {
		b := readFile(t, name)
		if len(b) == 0 {
			return // a marker, whose name says all
		}
		b[len(b)/2] ^= 0xff
		writeFile(t, name, b)
	})
}

// twoServers starts a second server on a data directory and on a prefix, also of a
// store that does not know conditional puts.
func twoServers(t *testing.T) {
	for what, rule := range map[string]faultproxy.Action{
		"a good store":                    nil,
		"a store that ignores conditions": faultproxy.Ignore("If-None-Match", "If-Match"),
		"a store that refuses conditions": func(x *faultproxy.Exchange) {
			if x.Request.Header.Get("If-None-Match")+x.Request.Header.Get("If-Match") != "" {
				faultproxy.Fail(501, "NotImplemented")(x)
				return
			}
			x.Pass()
		},
	} {
		t.Run(what, func(t *testing.T) {
			a := newArchive(t)
			if rule != nil {
				a.Rule(faultproxy.Rule{Method: "PUT", Times: faultproxy.Always, Do: rule})
			}
			m := install(t, a, "--seal.max-age", "1s")
			l := open(m, 2)
			l.append(3, 20_000)
			same := equip(t, a, m.dir)
			same.refused(5, "data directory")
			other := equip(t, a, filepath.Join(t.TempDir(), "other"))
			other.refused(5, "another store")
			m.cool(l.paths()...)
			// A copy of the data directory that runs on takes the prefix over, once: the
			// older one writes nothing from then on.
			l.append(3, 20_000)
			twin := equip(t, a, filepath.Join(t.TempDir(), "twin"))
			m.kill()
			if err := os.CopyFS(twin.dir, os.DirFS(m.dir)); err != nil {
				t.Fatal(err)
			}
			m.start()
			twin.refused(5, "older than cold storage")
			l.settle()
			if n := fmt.Sprint(a.objects("owner")); n != "[firn/owner]" {
				t.Errorf("owner records: %s", n)
			}
		})
	}
}
