//go:build integration

package clienttest_test

import (
	"bufio"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"firn/internal/clienttest"
)

// process is a server in a process of its own, which a crash kills.
type process struct {
	t *testing.T
	// command runs it with the data of the test on a port, 0 for any.
	command func(port string) *exec.Cmd
	// says is what it prints when it is up, its root in parentheses.
	says *regexp.Regexp

	port string
	cmd  *exec.Cmd
	log  io.Closer
	read chan struct{} // its output has ended
}

func startProcess(p *process) *process {
	p.t.Helper()
	p.port = "0"
	p.t.Cleanup(p.kill)
	if err := p.start(); err != nil {
		p.t.Fatal(err)
	}
	return p
}

func (p *process) URL() string { return "http://127.0.0.1:" + p.port }

func (p *process) Crash(between func()) error {
	p.kill()
	between()
	return p.start()
}

func (p *process) start() error {
	p.cmd = p.command(p.port)
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr, p.log, p.read = in, in, in, make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		close(p.read)
		return err
	}
	root := make(chan string, 1)
	go func() {
		defer close(p.read)
		defer close(root)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := p.says.FindStringSubmatch(lines.Text()); m != nil && len(root) == 0 {
				root <- m[1]
			} else if !strings.Contains(strings.ToLower(lines.Text()), "info") {
				p.t.Log(lines.Text())
			}
		}
	}()
	u, err := url.Parse(<-root)
	if err != nil {
		return err
	}
	p.port = u.Port()
	return nil
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.log.Close()
	<-p.read
}

// TestProcess runs the program itself, with the defaults and with a hot tier so small
// that most reads are cold.
func TestProcess(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "firn")
	build := exec.Command("go", "build", "-o", binary, "firn/cmd/firn")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for name, flags := range map[string][]string{
		"hot":  nil,
		"cold": {"--hot.max-bytes=64KiB", "--seal.target-bytes=16KiB", "--seal.max-age=1s"},
	} {
		t.Run(name, func(t *testing.T) {
			site{streams: "/ds/demo/", codes: true, step: 61, start: func(t *testing.T, hasty bool) host {
				dir := t.TempDir()
				h := startProcess(&process{
					t: t, says: regexp.MustCompile(`^firn serves (\S+),`),
					command: func(port string) *exec.Cmd {
						args := append([]string{
							"serve", "--listen=127.0.0.1:" + port, "--admin-listen=127.0.0.1:0", "--data-dir=" + filepath.Join(dir, "data"),
						}, flags...)
						if hasty {
							args = append(args, "--live.long-poll-timeout=100ms", "--live.sse-max-age=1s", "--live.sse-heartbeat=100ms")
						}
						return exec.Command(binary, args...)
					},
				})
				makeBucket(t, h)
				return h
			}}.run(t)
		})
	}
}

// TestReference runs the server that the authors of the protocol keep beside it.
func TestReference(t *testing.T) {
	site{
		streams: "/v1/stream/", step: 127,
		unable: map[string]string{
			"error codes": "its errors have none",
			"follow lines that are cut": "its events lose the space at the beginning of a line, " +
				"and a CRLF that two appends share becomes two line ends",
		},
		start: func(t *testing.T, hasty bool) host {
			dir := t.TempDir()
			wait := int64(20_000)
			if hasty {
				wait = hurry.LongPollTimeout.Milliseconds()
			}
			return startProcess(&process{
				t: t, says: regexp.MustCompile(`^(http://\S+)$`),
				command: func(port string) *exec.Cmd {
					return exec.Command("node", "../../testdata/js/reference.mjs", dir, port, strconv.FormatInt(wait, 10))
				},
			})
		},
	}.run(t)
}

var (
	_ host = (*process)(nil)
	_ host = (*clienttest.Server)(nil)
)
