package hot_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/tiertest/disk"
	"firn/tier/hot"
)

// heldFS holds compactions while a store is being opened.
type heldFS struct {
	vfs.FS
	opened chan struct{}
	count  atomic.Int64
}

func (h *heldFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if c == "pebble-compaction" {
		<-h.opened
		h.count.Add(1)
	}
	return h.FS.Create(name, c)
}

// What was in the logs is written to tables when a store is opened, which may make a
// compaction due. The open does not wait for it, however large it is; it comes after.
func TestOpenWaitsForNoCompaction(t *testing.T) {
	h := &heldFS{FS: disk.New().FS()}
	for round := range 12 {
		h.opened = make(chan struct{})
		opened := make(chan *hot.Store)
		go func() { opened <- open(t, h) }()
		var s *hot.Store
		select {
		case s = <-opened:
			close(h.opened)
		case <-time.After(30 * time.Second):
			close(h.opened)
			t.Fatalf("open number %d waits for a compaction", round+1)
		}
		for i := range 5 {
			create(t, s, fmt.Sprintf("s%d-%d", i, round)) // everywhere between the others
		}
		if err := s.Close(); err != nil { // ends what has begun
			t.Fatal(err)
		}
	}
	if h.count.Load() == 0 {
		t.Error("there was no compaction")
	}
}
