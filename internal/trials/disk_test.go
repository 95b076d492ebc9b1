//go:build integration

package trials_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

// TestFullDisk is about a disk that is full, at a server's runtime and at its start.
func TestFullDisk(t *testing.T) {
	t.Run("DU-bca", diskFillsUp)
	t.Run("DU-77e", startsOnAFullDisk)
}

// disk is a file system of its own, of a size.
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "firn-trial", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount a file system (which only root may): %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("unmount %s: %v %s", dir, err, out)
		}
	})
	return dir
}

// free is how many bytes a file system has left.
func free(t *testing.T, dir string) int64 {
	t.Helper()
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	return int64(s.Bavail) * s.Bsize
}

// ballast fills a file system until n bytes are left.
func ballast(t *testing.T, dir string, n int64) (remove func()) {
	t.Helper()
	name := filepath.Join(dir, "ballast")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 64<<10); free(t, dir) > n; {
		if _, err := f.Write(block[:min(int64(len(block)), free(t, dir)-n)]); err != nil {
			break // it is full
		}
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Error(err)
		}
	}
}

// refusals appends for a while and wants nothing but refusals that say when to come again.
func (l *ledger) refusals(d time.Duration) {
	l.m.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		for _, e := range l.entries {
			a, err := e.once(1000)
			if err != nil || a.status != 503 || a.header.Get("Retry-After") == "" {
				l.m.t.Fatalf("append to a full disk: %d %s %v, %v", a.status, a.body, a.header, err)
			}
		}
	}
}

// diskFillsUp appends while the object store is away, until the disk is full, and fills
// what is left by something else.
func diskFillsUp(t *testing.T) {
	const reserve = 12 << 20
	dir := disk(t, "48m")
	a := newArchive(t)
	m := equip(t, a, filepath.Join(dir, "data"), "--hot.min-free-bytes", "12MiB", "--seal.max-age", "1s", "--hot.max-bytes", "1MiB", "--hot.hard-bytes", "10GiB",
		"--cold.request-timeout", "2s")
	m.start()
	m.want(201, "PUT", "/ds/trial", "")
	l := open(m, 4)
	m.create("/ds/trial/victim", "text/plain", "to be deleted")
	a.Rule(faultproxy.Rule{Method: "PUT", Path: ".zst", Times: faultproxy.Always, Do: faultproxy.Fail(503, "ServiceUnavailable")})
	// What a compaction that met the end of the disk gives back may be taken once more.
	var refused time.Time
	m.until("appends are refused for a second", func() bool {
		for _, e := range l.entries {
			a, err := e.once(100_000)
			switch {
			case err != nil || a.status != 503 && a.status >= 300:
				t.Fatalf("append: %d %s, %v", a.status, a.body, err)
			case a.status != 503:
				refused = time.Time{}
			case a.header.Get("Retry-After") == "":
				t.Fatalf("a refusal says nothing of when to come again: %v", a.header)
			case refused.IsZero():
				refused = time.Now()
			}
		}
		return !refused.IsZero() && time.Since(refused) > time.Second
	})
	if left := free(t, dir); left < reserve/2 {
		t.Errorf("%d bytes are left when appends are refused", left)
	}
	l.holds("below the reserve")
	m.want(204, "DELETE", "/ds/trial/victim", "")

	remove := ballast(t, dir, 0)
	l.refusals(time.Duration(scaled(3, 300)) * time.Second)
	l.holds("with no byte left")
	remove()
	a.Clear()
	l.append(3, 10_000)
	m.want(404, "GET", "/ds/trial/victim", "")
	m.until("the backlog drains", func() bool { return m.metric("firn_hot_bytes") < 2<<20 })
	l.settle()
}

// startsOnAFullDisk kills a server whose disk something else has filled, and starts it
// there again and again.
func startsOnAFullDisk(t *testing.T) {
	dir := disk(t, "48m")
	a := newArchive(t)
	m := equip(t, a, filepath.Join(dir, "data"), "--hot.min-free-bytes", "12MiB", "--seal.max-age", "1h")
	m.start()
	m.want(201, "PUT", "/ds/trial", "")
	l := open(m, 4)
	l.append(10, 100_000)
	remove := ballast(t, dir, 0)
	m.kill()
	for range 3 {
		code, out := m.attempt()
		switch {
		case code != 0:
			t.Logf("exit code %d: %s", code, lastLine(out))
		default:
			l.refusals(100 * time.Millisecond)
			l.holds("started on a full disk")
		}
		m.kill()
	}
	remove()
	m.start()
	l.append(3, 10_000)
	l.settle()
}
