package hot_test

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// logOps are the operations by which the write-ahead log reaches the disk.
func isLog(op errorfs.Op) bool { return path.Ext(op.Path) == ".log" }

// When the disk fails, Fatal is called, nothing is acknowledged any more, and what
// was acknowledged is there at the next start.
func TestDiskFails(t *testing.T) {
	for name, c := range map[string]struct {
		fails func(errorfs.Op) bool
		err   error
	}{
		"sync": {func(op errorfs.Op) bool {
			return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
		}, syscall.EIO},
		"write":     {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }, syscall.EIO},
		"full disk": {func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileWrite }, syscall.ENOSPC},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			mem := vfs.NewCrashableMem()
			var broken atomic.Bool
			disk := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && isLog(op) && c.fails(op) {
					return c.err
				}
				return nil
			}))
			fatal := make(chan string, 100)
			s := openWith(t, hot.Options{FS: disk, Fatal: func(msg string) { fatal <- msg }})
			rec := create(t, s, "a")

			// Writers append until they are refused; the disk breaks on the way.
			var mu sync.Mutex
			acknowledged := make(map[string]bool)
			var writers sync.WaitGroup
			for w := range 8 {
				writers.Go(func() {
					for i := 0; ; i++ {
						line := fmt.Sprintf("%d:%d\n", w, i)
						_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte(line)})
						if err != nil {
							if !errors.Is(err, stream.ErrUnavailable) {
								t.Errorf("append: %v", err)
							}
							return
						}
						mu.Lock()
						acknowledged[line] = true
						n := len(acknowledged)
						mu.Unlock()
						if n == 200 {
							broken.Store(true)
						}
					}
				})
			}
			writers.Wait()
			if msg := <-fatal; !strings.Contains(msg, c.err.Error()) {
				t.Errorf("fatal message is %q", msg)
			}
			broken.Store(false)
			for range 2000 { // more than the queue holds
				if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("late")}); !errors.Is(err, stream.ErrUnavailable) {
					t.Fatalf("append after the failure: %v", err)
				}
			}
			if err := s.Delete(ctx, rec.ID); !errors.Is(err, stream.ErrUnavailable) {
				t.Fatalf("delete after the failure: %v", err)
			}

			// The failed store is left as it is: its process would have ended.
			s = open(t, mem.CrashClone(vfs.CrashCloneCfg{}))
			defer s.Close()
			rec = current(t, s, rec.ID)
			v := s.View()
			defer v.Close()
			data, err := v.Data(nil, rec.ID, 0, rec.Tail)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(data)) {
				delete(acknowledged, line)
			}
			if len(acknowledged) > 0 {
				t.Fatalf("%d acknowledged appends are lost", len(acknowledged))
			}
		})
	}
}

// A flush that fails for another reason than a full disk stops the process: Pebble
// would try for ever, and writers would hang.
func TestFlushFails(t *testing.T) {
	var broken atomic.Bool
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken.Load() && path.Ext(op.Path) == ".sst" {
			return syscall.EIO
		}
		return nil
	}))
	fatal := make(chan string, 100)
	s := openWith(t, hot.Options{FS: disk, MemTableBytes: 256 << 10, Fatal: func(msg string) { fatal <- msg }})
	rec := create(t, s, "a")
	broken.Store(true)
	// Each is larger than half a memtable, which begins a flush. What becomes of them
	// does not matter: the process would have ended.
	go func() {
		c := &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte(strings.Repeat("x", 200<<10))}
		for range 3 {
			if _, err := s.Append(context.Background(), c); err != nil {
				return
			}
		}
	}()
	if msg := <-fatal; !strings.Contains(msg, syscall.EIO.Error()) {
		t.Errorf("fatal message is %q", msg)
	}
}

// meteredFS says how much room is left.
type meteredFS struct {
	vfs.FS
	free atomic.Uint64
}

func (m *meteredFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: m.free.Load(), TotalBytes: 1 << 40}, nil
}

// Appends are refused while the disk is below its reserve, everything else is not.
func TestReserveOfFreeSpace(t *testing.T) {
	ctx := context.Background()
	disk := &meteredFS{FS: vfs.NewMem()}
	s := openWith(t, hot.Options{FS: disk, MinFreeBytes: 1000})
	defer s.Close()
	rec := create(t, s, "a")
	once, cancel := context.WithCancel(ctx)
	cancel() // Run looks once before it ends
	for _, step := range []struct {
		free uint64
		want error
	}{{1000, nil}, {999, stream.ErrHotFull}, {0, stream.ErrHotFull}, {1000, nil}} {
		disk.free.Store(step.free)
		if err := s.Run(once); err != nil {
			t.Fatal(err)
		}
		_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
		if !errors.Is(err, step.want) || (s.Full() != "") != (step.want != nil) {
			t.Fatalf("with %d bytes free: %v, %q", step.free, err, s.Full())
		}
		create(t, s, fmt.Sprint("with ", step.free, " free, ", step.want))
	}
	disk.free.Store(0)
	if err := s.Run(once); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
}
