package hot_test

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"firn/tier/hot"
)

func TestOpenTwice(t *testing.T) {
	dir := t.TempDir()
	o := hot.Options{MemTableBytes: 1 << 20}
	s, err := hot.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hot.Open(dir, o); !errors.Is(err, hot.ErrLocked) {
		t.Fatalf("second open in this process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	release := holdElsewhere(t, dir)
	if _, err := hot.Open(dir, o); !errors.Is(err, hot.ErrLocked) {
		t.Fatalf("open while another process has it: %v", err)
	}
	release()
	if s, err = hot.Open(dir, o); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// heldDir names the directory that this process, started by a test, is to open.
const heldDir = "FIRN_TEST_HELD_DIR"

// TestHold is the other process of TestOpenTwice: it has the store open until its
// input ends. By itself it does nothing.
func TestHold(t *testing.T) {
	dir := os.Getenv(heldDir)
	if dir == "" {
		return
	}
	s, err := hot.Open(dir, hot.Options{MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stdout.WriteString("open\n"); err != nil {
		t.Fatal(err)
	}
	bufio.NewScanner(os.Stdin).Scan()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func holdElsewhere(t *testing.T, dir string) (release func()) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestHold$")
	c.Env = append(os.Environ(), heldDir+"="+dir)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("other process: %v", err)
		}
	})
	t.Cleanup(release)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("other process says %q, %v", line, err)
	}
	return release
}

// A directory that may not be opened is not called one that is in use.
func TestOpenWithoutPermission(t *testing.T) {
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpLock {
			return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EACCES}
		}
		return nil
	}))
	_, err := hot.Open("hot", hot.Options{FS: disk})
	if !errors.Is(err, fs.ErrPermission) || errors.Is(err, hot.ErrLocked) {
		t.Fatalf("got %v", err)
	}
}

func TestOpenRefusesWhatItDoesNotKnow(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pebble.DB) error
		want   error
		says   string
	}{
		"newer format": {func(db *pebble.DB) error { return db.Set([]byte("mformat"), []byte("firn-hot-3"), pebble.Sync) }, hot.ErrFormat, "firn-hot-3"},
		"no identity":  {func(db *pebble.DB) error { return db.Delete([]byte("mstore"), pebble.Sync) }, hot.ErrDamaged, "no identity"},
		"no state":     {func(db *pebble.DB) error { return db.Delete([]byte("mstate"), pebble.Sync) }, hot.ErrDamaged, "no identity"},
		"newer state":  {func(db *pebble.DB) error { return db.Set([]byte("mstate"), []byte{2}, pebble.Sync) }, nil, "version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := vfs.NewMem()
			if err := open(t, mem).Close(); err != nil {
				t.Fatal(err)
			}
			db, err := pebble.Open("hot", &pebble.Options{FS: mem, FormatMajorVersion: pebble.FormatNewest, Logger: logger{t}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(c.change(db), db.Close()); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the first failure leaves nothing locked
				_, err = hot.Open("hot", hot.Options{FS: mem})
				if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
}

// logger is Pebble's in a test: its errors are the test's.
type logger struct{ t *testing.T }

func (logger) Infof(string, ...any)                {}
func (l logger) Errorf(format string, args ...any) { l.t.Errorf(format, args...) }
func (l logger) Fatalf(format string, args ...any) { l.t.Fatalf(format, args...) }

// Wherever the first start is cut off, the next one works, and what a start that
// ended had acknowledged is there.
func TestCrashInFirstStart(t *testing.T) {
	for at := 1; ; at++ {
		mem := vfs.NewCrashableMem()
		var after *vfs.MemFS
		n := 0
		var mu sync.Mutex
		disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == at {
					after = mem.CrashClone(vfs.CrashCloneCfg{})
				}
			}
			return nil
		}))
		s, err := hot.Open("data/hot", hot.Options{FS: disk, MemTableBytes: 1 << 20, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		id := s.ID()
		mu.Lock()
		started := after == nil
		if started {
			after = mem.CrashClone(vfs.CrashCloneCfg{})
		}
		mu.Unlock()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s, err = hot.Open("data/hot", hot.Options{FS: after, MemTableBytes: 1 << 20, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatalf("start after a crash at operation %d of the first one: %v", at, err)
		}
		if started && s.ID() != id {
			t.Fatalf("store %s has become %s", id, s.ID())
		}
		create(t, s, "a")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if started {
			return
		}
	}
}
