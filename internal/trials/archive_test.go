//go:build integration

package trials_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"firn/internal/faultproxy"
	"firn/internal/versitygw"
)

// archive is a bucket of a real S3 server, behind a proxy that fails by rules.
type archive struct {
	*faultproxy.Proxy
	t  *testing.T
	s3 *versitygw.Server
}

const bucketName = "archive"

func newArchive(t *testing.T) *archive {
	t.Helper()
	return archiveOf(t, versitygw.Start(t, versitygw.Options{}))
}

func newVersionedArchive(t *testing.T) *archive {
	t.Helper()
	s3 := versitygw.Start(t, versitygw.Options{Versions: true})
	a := archiveOf(t, s3)
	s3.KeepVersions(t, bucketName)
	return a
}

func archiveOf(t *testing.T, s3 *versitygw.Server) *archive {
	t.Helper()
	s3.MakeBucket(t, bucketName)
	return &archive{t: t, s3: s3, Proxy: faultproxy.Start(t, faultproxy.Options{
		Upstream: s3.Endpoint, AccessKey: s3.AccessKey, SecretKey: s3.SecretKey,
	})}
}

// at is the setting for a prefix of the bucket.
func (a *archive) at(prefix string) string {
	return "s3://" + bucketName + "/" + prefix + "?region=us-east-1&path_style=true&endpoint=" + a.URL
}

// objects lists the files of objects, below the bucket's folder, that hold a text in
// their names.
func (a *archive) objects(part string) []string {
	a.t.Helper()
	var all []string
	root := a.s3.File(bucketName, "")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			// What is removed while this walks is not there.
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if rel, _ := filepath.Rel(root, path); strings.Contains(rel, part) && !strings.HasPrefix(rel, ".") {
			all = append(all, rel)
		}
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return all
}

func (a *archive) file(key string) string { return a.s3.File(bucketName, key) }

// machine is the real binary with its cold tier in an archive.
type machine struct {
	*process
	archive *archive
	dir     string // its data directory
}

// install starts a machine with a bucket "trial". What is small are its segments.
func install(t *testing.T, a *archive, args ...string) *machine {
	t.Helper()
	m := equip(t, a, filepath.Join(t.TempDir(), "data"), args...)
	m.start()
	m.want(201, "PUT", "/ds/trial", "")
	return m
}

// equip is install without the start.
func equip(t *testing.T, a *archive, dir string, args ...string) *machine {
	t.Helper()
	p := prepare(t, dir, append([]string{
		"--cold", a.at("firn"), "--hot.memtable-bytes", "1MiB", "--cache.max-bytes", "1MiB", "--seal.target-bytes", "64KiB",
		"--backup.interval", "0s", "--hot.min-free-bytes", "0",
	}, args...)...)
	p.env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FIRN_") })
	p.env = append(p.env, "AWS_ACCESS_KEY_ID="+a.s3.AccessKey, "AWS_SECRET_ACCESS_KEY="+a.s3.SecretKey)
	t.Cleanup(func() {
		text := p.log.String()
		if strings.Contains(text, "panic") {
			t.Error("there is a panic in the log")
		}
		if n := strings.Count(text, "\n"); n > 2000 {
			t.Errorf("the log has %d lines", n)
		}
		for line := range strings.Lines(text) {
			if len(line) > 4<<10 {
				t.Errorf("the log has a line of %d bytes: %.500s", len(line), line)
			}
		}
	})
	return &machine{process: p, archive: a, dir: dir}
}

// refused tries to start the server, which must end with the exit code and say why.
func (p *process) refused(code int, says string) {
	p.t.Helper()
	got, out := p.run(p.args...)
	if got != code || !strings.Contains(out, says) {
		p.t.Errorf("start: exit code %d, want %d, and %q; it says:\n%s", got, code, says, out)
	}
}

// attempt starts the server, which may refuse: then it returns the exit code and what
// the server said.
func (p *process) attempt() (int, string) {
	p.t.Helper()
	before := len(p.log.String())
	if !p.launch() {
		p.t.Fatal("the binary does not start")
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		// A zombie is a process that has ended and is not waited for.
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			cmd := p.cmd
			p.kill()
			return cmd.ProcessState.ExitCode(), p.log.String()[before:]
		}
		if res, err := http.Get(p.admin + "/readyz"); err == nil {
			res.Body.Close()
			return 0, ""
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatal("the server neither starts nor ends")
		}
	}
}

// end stops the server as an operator would and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	p.mu.Lock()
	cmd := p.cmd
	p.cmd = nil
	p.mu.Unlock()
	if cmd == nil {
		p.t.Fatal("the server does not run")
	}
	p.sender.CloseIdleConnections()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	return cmd.ProcessState.ExitCode()
}

// verify runs firn verify on a stopped server's data and fails unless it exits as wanted.
func (m *machine) verify(code int) string {
	m.t.Helper()
	got, out := m.run(append([]string{"verify"}, m.args[1:]...)...)
	if got != code {
		m.t.Errorf("firn verify: exit code %d, want %d\n%s", got, code, out)
	}
	return out
}

// verifyOnline has the running server verify itself.
func (m *machine) verifyOnline() {
	m.t.Helper()
	if code, out := m.run("verify", "--online", "--admin-url", m.admin); code != 0 {
		m.t.Errorf("firn verify --online: exit code %d\n%s", code, out)
	}
}

// cool seals and evicts streams. Trouble of the object store is waited for.
func (m *machine) cool(paths ...string) {
	m.t.Helper()
	for _, path := range paths {
		for _, step := range []string{"seal", "evict"} {
			m.until(step+" "+path, func() bool { return m.step(path, step) == http.StatusOK })
		}
	}
}

// step asks the operator's listener for a step and returns the status.
func (m *machine) step(path, step string) int {
	m.t.Helper()
	res, err := http.Post(m.admin+"/admin/streams"+path[len("/ds"):]+"/"+step, "", nil)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// until waits for something that the server does by itself.
func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(2 * patience); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("never: %s", what)
		}
	}
}

// readiness is what /readyz says.
func (p *process) readiness() string {
	_, out := p.run("health", "--admin-url", p.admin)
	return out
}

// scrape returns all metrics.
func (p *process) scrape() string {
	p.t.Helper()
	res, err := http.Get(p.admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}
