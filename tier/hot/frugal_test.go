package hot_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/tier/hot"
)

// narrowFS is a disk of a size, and knows who writes on it.
type narrowFS struct {
	vfs.FS
	free     atomic.Int64
	lowest   atomic.Int64
	attempts atomic.Int64 // files of compactions
}

func (n *narrowFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: uint64(n.free.Load()), TotalBytes: 1 << 40}, nil
}

func (n *narrowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := n.FS.Create(name, c)
	if c != "pebble-compaction" || err != nil {
		return f, err
	}
	n.attempts.Add(1)
	return &narrowFile{File: f, fs: n}, nil
}

// narrowFile takes room until it is closed: an attempt that fails gives it back.
type narrowFile struct {
	vfs.File
	fs   *narrowFS
	took int64
}

func (f *narrowFile) Write(p []byte) (int, error) {
	f.took += int64(len(p))
	free := f.fs.free.Add(-int64(len(p)))
	for low := f.fs.lowest.Load(); free < low && !f.fs.lowest.CompareAndSwap(low, free); low = f.fs.lowest.Load() {
	}
	return f.File.Write(p)
}

func (f *narrowFile) Close() error {
	f.fs.free.Add(f.took)
	return f.File.Close()
}

// A compaction that the disk has no room for leaves half of the reserve to logs and
// flushes, and is not tried again without a pause; one that it has room for is done.
func TestCompactionsLeaveTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const reserve = 8 << 20
		ctx := context.Background()
		disk := &narrowFS{FS: vfs.NewMem()}
		disk.free.Store(1 << 40)
		disk.lowest.Store(1 << 40)
		s := openWith(t, hot.Options{FS: disk, MemTableBytes: 256 << 10, MinFreeBytes: reserve})
		defer s.Close()
		payload := make([]byte, 64<<10)
		random := rand.NewChaCha8([32]byte{})
		for i := range 200 { // 12 MiB
			rec := create(t, s, fmt.Sprint(i))
			_, _ = random.Read(payload) // never fails
			if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: payload}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		disk.free.Store(reserve)
		disk.lowest.Store(reserve)
		before := disk.attempts.Load()
		patient, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for part := range hot.ReclaimParts {
			if err := s.Reclaim(patient, part); err != nil {
				break // there is no room
			}
		}
		if left := disk.lowest.Load(); left < reserve/2-1<<20 || left >= reserve {
			t.Errorf("compactions left %d bytes of a reserve of %d", left, reserve)
		}
		<-patient.Done()
		if n := disk.attempts.Load() - before; n > 200 {
			t.Errorf("%d files were begun in a minute without room", n)
		}
		disk.free.Store(1 << 40)
		for part := range hot.ReclaimParts {
			if err := s.Reclaim(ctx, part); err != nil {
				t.Errorf("with room: %v", err)
			}
		}
	})
}
