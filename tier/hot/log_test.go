package hot_test

import (
	"bytes"
	"context"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"firn/tier/hot"
)

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// Pebble tries work that fails again as fast as it can; the log does not follow it.
func TestWorkThatFailsFloodsNoLog(t *testing.T) {
	var full atomic.Bool
	var tries atomic.Int64
	enough := make(chan struct{})
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpCreate && path.Ext(op.Path) == ".sst" {
			if tries.Add(1) == 40 {
				close(enough)
			}
			return syscall.ENOSPC
		}
		return nil
	}))
	log := &lines{}
	s := openWith(t, hot.Options{FS: disk, MemTableBytes: 256 << 10, Logger: slog.New(slog.NewTextHandler(log, nil))})
	rec := create(t, s, "a")
	full.Store(true)
	c := &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte(strings.Repeat("x", 200<<10))}
	appended := make(chan error, 1)
	go func() { // waits for the disk as soon as too many memtables do
		for range 4 {
			if _, err := s.Append(context.Background(), c); err != nil {
				appended <- err
				return
			}
		}
		appended <- nil
	}()
	<-enough
	if n := log.count("background work failed"); n == 0 || n > 11 {
		t.Errorf("%d tries have %d lines in the log, want one to eleven", tries.Load(), n)
	}
	full.Store(false)
	if err := <-appended; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
