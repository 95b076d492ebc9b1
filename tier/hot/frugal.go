package hot

import (
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	// compactionWrites is how Pebble marks the files that compactions write.
	compactionWrites vfs.DiskWriteCategory = "pebble-compaction"
	// spaceStep is how many bytes a compaction writes between two looks at the disk.
	spaceStep = 1 << 20
	// A compaction that the disk had no room for is tried again after minWait, then
	// after twice that, up to maxWait.
	minWait = time.Second
	maxWait = 10 * time.Second
)

// frugalFS keeps the last free space of a disk from compactions. They write what they
// read once more before they give anything back, so a large one can fill a disk; then a
// log or a flush fails, which stops the process, or its next start.
//
// Pebble tries a failed compaction again at once and for ever. It is made to wait here,
// or it would fill the disk many times a second.
type frugalFS struct {
	vfs.FS
	dir  string
	keep uint64 // bytes that stay free
	stop <-chan struct{}

	mu    sync.Mutex // guards what follows
	wait  time.Duration
	until time.Time
}

// Create waits if a compaction has met the end of the disk.
func (f *frugalFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if category != compactionWrites {
		return f.FS.Create(name, category)
	}
	f.mu.Lock()
	pause := time.Until(f.until)
	f.mu.Unlock()
	if pause > 0 {
		select {
		case <-time.After(pause):
		case <-f.stop:
		}
	}
	file, err := f.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	// The first step is free: who drops what was deleted may hardly write anything.
	return &frugalFile{File: file, fs: f, name: name, left: spaceStep}, nil
}

// Unwrap lets Pebble find the file system below.
func (f *frugalFS) Unwrap() vfs.FS { return f.FS }

// look refuses to take more of the disk when there is no more than is to stay free.
func (f *frugalFS) look(name string) error {
	u, err := f.FS.GetDiskUsage(f.dir)
	if err != nil || u.AvailBytes > f.keep {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wait = min(max(2*f.wait, minWait), maxWait)
	f.until = time.Now().Add(f.wait)
	return fmt.Errorf("a compaction waits for room: %w", &fs.PathError{Op: "write", Path: name, Err: syscall.ENOSPC})
}

// retry has the next compaction tried at once: there is less to write than before.
func (f *frugalFS) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wait, f.until = 0, time.Time{}
}

// frugalFile is a file of a compaction.
type frugalFile struct {
	vfs.File
	fs   *frugalFS
	name string
	left int // bytes until the next look
}

// Write refuses to take the last free space. Errors: ENOSPC.
func (f *frugalFile) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		if err := f.fs.look(f.name); err != nil {
			return 0, err
		}
		f.left = spaceStep
	}
	return f.File.Write(p)
}

// Close of a whole file tells that there is room.
func (f *frugalFile) Close() error {
	f.fs.mu.Lock()
	if time.Now().After(f.fs.until) {
		f.fs.wait = 0
	}
	f.fs.mu.Unlock()
	return f.File.Close()
}
