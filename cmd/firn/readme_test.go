//go:build integration

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shells are the ```sh blocks of a text.
var shells = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// TestReadmeSession does what the README shows, in an empty folder, with the binary
// that its first command builds.
func TestReadmeSession(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, session, ok := strings.Cut(string(readme), "\n## A session\n")
	session, _, ok2 := strings.Cut(session, "\n## ")
	blocks := shells.FindAllStringSubmatch(session, -1)
	if !ok || !ok2 || len(blocks) < 3 {
		t.Fatalf("the README has no session, or one of %d blocks", len(blocks))
	}

	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "firn"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	serve := exec.Command("./firn", "serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	serve.Dir = dir
	stdout, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	m := served.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("server said %q, %v", line, err)
	}
	defer func() {
		serve.Process.Signal(syscall.SIGTERM)
		if err := serve.Wait(); err != nil {
			t.Errorf("server ended with %v", err)
		}
	}()

	// The session's own words but for the ports; what it leaves in the background
	// ends with it.
	script := "set -eo pipefail\ntrap 'kill $(jobs -p)' EXIT\n"
	for _, b := range blocks {
		script += b[1] + "\n"
	}
	script = strings.ReplaceAll(script, "http://127.0.0.1:4437", m[1])
	bash := exec.Command("bash", "-c", script)
	bash.Dir = dir
	bash.Env = append(os.Environ(), "FIRN_ADMIN_URL="+m[2])
	bash.WaitDelay = 5 * time.Second
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("session: %v\n%s", err, out)
	}
	for _, want := range []string{
		"HTTP/1.1 201 Created",
		`[{"id":1},{"id":2}]`,                    // read
		"event: data",                            // followed
		"\n{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n", // zstd -dc
		`Server-Timing: tier;desc="cold"`,
		"cold only",
		"Content-Type: multipart/mixed",
		`{"orders":3}`,
		"HTTP/1.1 410 Gone",
	} {
		if !strings.Contains(strings.ReplaceAll(string(out), "\r", ""), want) {
			t.Errorf("the session shows no %q", want)
		}
	}
	if t.Failed() {
		t.Logf("it shows\n%s", out)
	}
}
