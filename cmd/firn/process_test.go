package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"firn/internal/admin"
)

// asFirn in the environment makes the test's own binary be firn.
const asFirn = "TEST_BINARY_IS_FIRN"

func TestMain(m *testing.M) {
	if os.Getenv(asFirn) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// command is firn as a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = []string{asFirn + "=1"}
	return cmd
}

// process is `firn serve` as a process of its own.
type process struct {
	t          *testing.T
	cmd        *exec.Cmd
	url, admin string
	log        *buffer
	done       chan error
}

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, log: new(buffer), done: make(chan error, 1)}
	p.cmd = command(t, append([]string{"serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = p.log
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.end()
		if t.Failed() {
			t.Logf("log of the server:\n%s", p.log)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	m := served.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("server said %q, %v", line, err)
	}
	p.url, p.admin = m[1], m[2]
	go func() { p.done <- p.cmd.Wait() }()
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// end waits for the end and returns how it was: nil is exit code 0.
func (p *process) end() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err // for the cleanup
		return err
	case <-time.After(30 * time.Second):
		p.t.Error("the server has not ended after 30 s")
		return errors.New("still running")
	}
}

// upload is an append that is under way: the server has asked for its body, which
// is held back.
type upload struct {
	body chan string // what it is to be
	done chan int    // the status of the answer, 0 for none
}

func newUpload(t *testing.T, url string) *upload {
	t.Helper()
	u := &upload{make(chan string, 1), make(chan int, 1)}
	asked := make(chan struct{})
	req, err := http.NewRequest("POST", url, readFunc(func(p []byte) (int, error) {
		close(asked)
		return copy(p, <-u.body), io.EOF
	}))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Expect", "100-continue") // then it is the handler that asks
	go func() {
		tr := &http.Transport{ExpectContinueTimeout: 30 * time.Second}
		defer tr.CloseIdleConnections()
		status := 0
		if resp, err := tr.RoundTrip(req); err == nil {
			resp.Body.Close()
			status = resp.StatusCode
		}
		u.done <- status
	}()
	<-asked
	return u
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// SIGTERM lets a request under way end. Until then the admin listener tells that
// the server is draining, and a live reader has had its closing answer.
func TestSIGTERM(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, "--data-dir="+dir)
	put := func(path, body string) {
		t.Helper()
		if a, err := request("PUT", p.url+path, body, asJSON); err != nil || a.StatusCode != http.StatusCreated {
			t.Fatalf("PUT %s: %+v, %v", path, a, err)
		}
	}
	put("/v1/stream/orders", "")
	resp, err := http.Get(p.url + "/v1/stream/orders?offset=now&live=sse")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	under := newUpload(t, p.url+"/v1/stream/orders")

	p.signal(syscall.SIGTERM)
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(b), "\n\n") || strings.Count(string(b), "event: control") < 2 {
		t.Errorf("the event stream ended with %q, %v", b, err)
	}
	a, err := request("GET", p.admin+"/readyz", "")
	if err != nil {
		t.Fatal(err)
	}
	var r admin.Readiness
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.StatusCode != http.StatusServiceUnavailable || r.Ready {
		t.Errorf("while it drains it is ready: %s %s", a.Status, a.body)
	}
	if a, err := request("GET", p.admin+"/healthz", ""); err != nil || a.StatusCode != http.StatusOK {
		t.Errorf("while it drains it is not healthy: %+v, %v", a, err)
	}
	under.body <- `{"id":1}`
	if status := <-under.done; status != http.StatusNoContent {
		t.Errorf("the append under way was answered with %d", status)
	}
	if err := p.end(); err != nil {
		t.Errorf("the server ended with %v", err)
	}

	s := start(t, dir)
	if a := s.must(200, "GET", "/v1/stream/orders", ""); a.body != `[{"id":1}]` {
		t.Errorf("after the restart there is %s", a.body)
	}
	s.mustStop()
}

// A second signal does not wait for anybody.
func TestSecondSignalEnds(t *testing.T) {
	p := startProcess(t, "--data-dir="+t.TempDir())
	if _, err := request("PUT", p.url+"/v1/stream/orders", "", asJSON); err != nil {
		t.Fatal(err)
	}
	under := newUpload(t, p.url+"/v1/stream/orders")
	p.signal(os.Interrupt)
	until(t, "it drains", func() bool { return strings.Contains(p.log.String(), "draining") })
	// What is swallowed before the program has stopped listening is not the second one.
	until(t, "it ends", func() bool {
		p.cmd.Process.Signal(os.Interrupt)
		return len(p.done) == 1
	})
	err := p.end()
	under.body <- ""
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("the server ended with %v, want the signal", err)
	}
}

// A request that takes longer than the grace is cut, and all is closed in order.
func TestGraceEnds(t *testing.T) {
	s := start(t, t.TempDir(), "--shutdown.grace=50ms")
	s.must(201, "PUT", "/v1/stream/orders", "", asJSON)
	under := newUpload(t, s.url+"/v1/stream/orders")
	s.mustStop()
	under.body <- "1"
	if status := <-under.done; status != 0 {
		t.Errorf("the append was answered with %d", status)
	}
	if !strings.Contains(s.log.String(), "cutting them") {
		t.Error("the log does not tell that a request was cut")
	}
}

// A server that is refused has not touched what another one is receiving.
func TestSecondServerLeavesTheSpool(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	file := filepath.Join(dir, "spool", "snapshot")
	if err := os.WriteFile(file, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, exitConflict, "in use by another process", "--data-dir", dir)
	if _, err := os.Stat(file); err != nil {
		t.Error("the spool was emptied")
	}
	s.mustStop()
	s = start(t, dir)
	if _, err := os.Stat(file); err == nil {
		t.Error("what a crash left in the spool is still there")
	}
	s.mustStop()
}

// What has been sealed cannot be read without cold storage, so such a start is a
// mistake.
func TestColdTakenAway(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	s.mustStop()
	refused(t, exitUsage, "cold.url", "--data-dir", dir, "--cold", "none")
}

// The process exits with the codes that run's errors stand for.
func TestExitCodeOfProcess(t *testing.T) {
	for args, want := range map[string]int{"version": exitOK, "fly": exitUsage, "segment dump absent": exitFailure} {
		cmd := command(t, strings.Fields(args)...)
		out, err := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("firn %s: exit code %d (%v), want %d\n%s", args, got, err, want, out)
		}
	}
}
