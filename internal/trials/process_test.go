package trials_test

import (
	"bufio"
	"bytes"
	"context"
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
)

// process is the real binary, which can be killed and started again on the same data.
type process struct {
	client
	admin string
	args  []string
	under []string // a program that starts the server, with its arguments; nil for none
	env   []string

	launched bool

	mu  sync.Mutex
	cmd *exec.Cmd
	log lockedBuffer
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// spawn starts the binary with a bucket "trial", and ends it with the test.
func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	p := prepare(t, filepath.Join(t.TempDir(), "data"), args...)
	p.start()
	p.want(201, "PUT", "/ds/trial", "")
	return p
}

// prepare is spawn without the start.
func prepare(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	listen, admin := freeAddr(t), freeAddr(t)
	p := &process{client: newClient(t), admin: "http://" + admin, env: os.Environ()}
	p.url = "http://" + listen
	p.args = append([]string{
		"serve", "--listen", listen, "--admin-listen", admin, "--data-dir", dir,
		"--hot.memtable-bytes", "4MiB", "--hot.cache-bytes", "8MiB",
	}, args...)
	t.Cleanup(func() {
		p.kill()
		if p.launched {
			// Whatever a trial does, what it leaves must be whole.
			if code, out := p.run(append([]string{"verify"}, p.args[1:]...)...); code != 0 {
				t.Errorf("firn verify: exit code %d\n%s", code, out)
			}
		}
		if t.Failed() {
			text := p.log.String()
			t.Logf("log of the server:\n%s", text[max(0, len(text)-10_000):])
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

// start runs the binary and returns when it is ready. It is for any goroutine.
func (p *process) start() {
	if !p.launch() {
		return
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		res, err := http.Get(p.admin + "/readyz")
		if err == nil {
			res.Body.Close()
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			p.t.Errorf("server is not ready: %v", err)
			return
		}
	}
}

// launch runs the binary and does not wait for it.
func (p *process) launch() bool {
	path, err := binary()
	if err != nil {
		p.t.Error(err)
		return false
	}
	cmd := exec.Command(path, p.args...)
	if p.under != nil {
		cmd = exec.Command(p.under[0], slices.Concat(p.under[1:], []string{path}, p.args)...)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &p.log, &p.log
	if err := cmd.Start(); err != nil {
		p.t.Error(err)
		return false
	}
	p.mu.Lock()
	p.cmd, p.launched = cmd, true
	p.mu.Unlock()
	return true
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

// run runs another command of the binary and returns its exit code and all it says.
func (p *process) run(args ...string) (int, string) {
	p.t.Helper()
	path, err := binary()
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// metric returns the sum of a metric's samples.
func (p *process) metric(name string) (sum float64) {
	p.t.Helper()
	res, err := http.Get(p.admin + "/metrics")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if before, _, _ := strings.Cut(series, "{"); before != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", lines.Text(), err)
		}
		sum += v
	}
	return sum
}

// operate calls the operator's listener. It is for any goroutine.
func (p *process) operate(path, step string) error {
	res, err := http.Post(p.admin+"/admin/streams"+path[len("/ds"):]+"/"+step, "", nil)
	if err == nil {
		res.Body.Close()
	}
	return err
}
