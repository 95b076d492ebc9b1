//go:build integration

package soak_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/versitygw"
)

// process is a firn server that can be killed and started again on the same data.
type process struct {
	t      *testing.T
	binary string
	args   []string
	env    []string
	dir    string
	url    string
	admin  string

	restarting sync.Mutex

	mu    sync.Mutex
	cmd   *exec.Cmd
	log   *os.File
	calls map[string]float64 // object calls of the processes before this one
	disk  []int64            // size of hot/ over time, bytes
}

// newProcess prepares a server whose objects are in s3, reached by an endpoint.
func newProcess(t *testing.T, s3 *versitygw.Server, endpoint string, args ...string) *process {
	t.Helper()
	p := &process{t: t, binary: filepath.Join(t.TempDir(), "firn"), dir: t.TempDir(), calls: make(map[string]float64)}
	build := exec.Command("go", "build", "-o", p.binary, "firn/cmd/firn")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	s3.MakeBucket(t, "soak")
	listen, admin := freeAddr(t), freeAddr(t)
	p.url, p.admin = "http://"+listen, "http://"+admin
	p.args = append([]string{
		"serve", "--listen", listen, "--admin-listen", admin, "--data-dir", filepath.Join(p.dir, "data"),
		"--cold", "s3://soak/archive?region=us-east-1&path_style=true&endpoint=" + endpoint,
	}, args...)
	// A setting of the tests, such as where versitygw is, is none of the server's.
	p.env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FIRN_") })
	p.env = append(p.env, "AWS_ACCESS_KEY_ID="+s3.AccessKey, "AWS_SECRET_ACCESS_KEY="+s3.SecretKey)
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	p.log = log
	t.Cleanup(func() {
		p.kill()
		log.Close()
		if t.Failed() {
			if b, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("log of the server:\n%s", b[max(0, len(b)-20_000):])
			}
		}
	})
	return p
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs the server and returns when it is ready.
func (p *process) start() {
	cmd := exec.Command(p.binary, p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.log, p.log
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return
	}
	p.mu.Lock()
	p.cmd = cmd
	p.mu.Unlock()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		resp, err := http.Get(p.admin + "/readyz")
		if err == nil {
			resp.Body.Close()
			return
		}
	}
	p.t.Error("server is not ready after 30 s")
}

// restart kills the server and starts it again.
func (p *process) restart() {
	p.restarting.Lock()
	defer p.restarting.Unlock()
	p.keepCalls()
	p.kill()
	p.start()
}

// kill ends the server without warning.
func (p *process) kill() {
	p.mu.Lock()
	cmd := p.cmd
	p.cmd = nil
	p.mu.Unlock()
	if cmd != nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// stop ends the server as an operator would.
func (p *process) stop() error {
	p.mu.Lock()
	cmd := p.cmd
	p.cmd = nil
	p.mu.Unlock()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return cmd.Wait()
}

// verify runs firn verify, which must find nothing.
func (p *process) verify(args ...string) {
	p.t.Helper()
	cmd := exec.Command(p.binary, append([]string{"verify"}, args...)...)
	cmd.Env = p.env
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("firn verify: %v\n%s", err, out)
	}
}

// metrics reads the samples whose names begin with the prefix.
func (p *process) metrics(prefix string) map[string]float64 {
	resp, err := http.Get(p.admin + "/metrics")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	samples := make(map[string]float64)
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		name, value, ok := strings.Cut(s.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && strings.HasPrefix(name, prefix) {
			samples[name] = v
		}
	}
	return samples
}

// keepCalls adds the object calls of the running process to the count. A kill
// forgets those since.
func (p *process) keepCalls() {
	for name, v := range p.metrics("firn_object_calls_total") {
		p.calls[name] += v
	}
}

// watchDisk notes the size of the hot directory every second until stop closes.
func (p *process) watchDisk(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Second):
			p.disk = append(p.disk, dirSize(filepath.Join(p.dir, "data", "hot")))
		}
	}
}

func dirSize(dir string) (size int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

func (p *process) String() string { return fmt.Sprintf("server at %s", p.url) }
