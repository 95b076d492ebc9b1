package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// server is a firn server in this process.
type server struct {
	t          *testing.T
	url, admin string
	cancel     context.CancelFunc
	done       chan error
	log        *buffer
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

var served = regexp.MustCompile(`^firn serves (https?://\S+), admin on (http://\S+),`)

// start runs `firn serve` on free ports until the test ends.
func start(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{t: t, cancel: cancel, done: make(chan error, 1), log: new(buffer)}
	r, w := io.Pipe()
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0",
		"--data-dir", dir, "--hot.min-free-bytes", "0", "--hot.memtable-bytes", "1MiB"}, args...)
	go func() {
		err := run(ctx, args, nil, w, s.log)
		w.CloseWithError(io.EOF)
		s.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		if s.done != nil {
			<-s.done
		}
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.log)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	go io.Copy(io.Discard, r)
	m := served.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("server said %q (%v) and ended with %v", line, err, s.stop())
	}
	s.url, s.admin = m[1], m[2]
	return s
}

// stop ends the server as SIGTERM does.
func (s *server) stop() error {
	s.cancel()
	err := <-s.done
	s.done = nil
	return err
}

// mustStop is stop for servers that have no reason to complain.
func (s *server) mustStop() {
	s.t.Helper()
	if err := s.stop(); err != nil {
		s.t.Fatalf("server ended with %v", err)
	}
}

// answer is what came back of a request.
type answer struct {
	*http.Response
	body string
}

// do makes a request of the clients' listener; headers are "Name: value".
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	a, err := request(method, s.url+path, body, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func request(method, target, body string, headers ...string) (answer, error) {
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp, string(b)}, err
}

// must is do for requests with only one right status.
func (s *server) must(status int, method, path, body string, headers ...string) answer {
	s.t.Helper()
	a := s.do(method, path, body, headers...)
	if a.StatusCode != status {
		s.t.Fatalf("%s %s: %s, want %d\n%s", method, path, a.Status, status, a.body)
	}
	return a
}

// samples reads the metrics of the server, each by its name and labels.
func (s *server) samples() map[string]float64 {
	s.t.Helper()
	a, err := request(http.MethodGet, s.admin+"/metrics", "")
	if err != nil {
		s.t.Fatal(err)
	}
	samples := make(map[string]float64)
	for line := range strings.Lines(a.body) {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			v, err := strconv.ParseFloat(strings.TrimSpace(line[i:]), 64)
			if err != nil {
				s.t.Fatalf("sample %q: %v", line, err)
			}
			samples[line[:i]] = v
		}
	}
	return samples
}

// until waits for a condition.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-deadline:
			t.Fatalf("after 30 s still not: %s", what)
		case <-tick.C:
		}
	}
}

// outcome is what a command left.
type outcome struct {
	code           int
	stdout, stderr string
}

// firn runs a command to its end.
func firn(environ []string, args ...string) outcome {
	var stdout, stderr buffer
	code := exitCode(run(context.Background(), args, environ, &stdout, &stderr), &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// firn runs a command against the server.
func (s *server) firn(args ...string) outcome {
	return firn([]string{"FIRN_URL=" + s.url, "FIRN_ADMIN_URL=" + s.admin}, args...)
}

// mustFirn is firn for commands that have to succeed; it returns their output.
func (s *server) mustFirn(args ...string) string {
	s.t.Helper()
	o := s.firn(args...)
	if o.code != exitOK {
		s.t.Fatalf("firn %s: exit code %d\n%s", strings.Join(args, " "), o.code, o.stderr)
	}
	return o.stdout
}

// refused runs `firn serve` where it must not start.
func refused(t *testing.T, code int, says string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr buffer
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}, args...)
	err := run(ctx, args, nil, &stdout, &stderr)
	if got := exitCode(err, &stderr); got != code || !strings.Contains(stderr.String(), says) || ctx.Err() != nil {
		t.Errorf("firn %s: exit code %d, want %d and a message with %q\n%s", strings.Join(args, " "), got, code, says, &stderr)
	}
}

// objects returns the files below a folder whose names end with suffix.
func objects(t *testing.T, dir, suffix string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, suffix) {
			found = append(found, path)
		}
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}
