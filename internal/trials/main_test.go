package trials_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	flagFull   = flag.Bool("full", false, "take the figures of the trials as they were reported")
	flagBinary = flag.String("binary", "", "server to try; empty is to build it")
)

// scaled returns the figure of a trial, or with -full the one that was reported.
func scaled(small, full int) int {
	if *flagFull {
		return full
	}
	return small
}

// binary builds the server once and returns where it is.
var binary = sync.OnceValues(func() (string, error) {
	if *flagBinary != "" {
		return *flagBinary, nil
	}
	dir, err := os.MkdirTemp("", "firn-trials-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "firn")
	build := exec.Command("go", "build", "-o", path, "firn/cmd/firn")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return path, fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	flag.Parse()
	path, err := binary()
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	if *flagBinary == "" {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}
