package hot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/time/rate"
)

// memTables is how many memtables may wait for a flush before writes stall.
const memTables = 4

func (s *Store) openPebble() error {
	if err := s.checkFiles(); err != nil {
		return err
	}
	s.cache = pebble.NewCache(s.opts.CacheBytes)
	o := &pebble.Options{
		FS:                 s.disk(),
		Cache:              s.cache,
		Logger:             pebbleLogger{s, seldom()},
		FormatMajorVersion: pebble.FormatNewest,
		// The defaults are made for a 4 MiB memtable. Appends that are deleted again
		// after a while want few, large files: each small one in L0 costs an fsync.
		MaxOpenFiles:                s.opts.OpenFiles,
		MemTableSize:                s.opts.MemTableBytes,
		MemTableStopWritesThreshold: memTables,
		L0StopWritesThreshold:       40,
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(2, runtime.NumCPU()/2) },
		FlushDelayDeleteRange:       10 * time.Second,
		EventListener:               s.events(),
	}
	size := int64(16 << 20)
	for i := range o.TargetFileSizes {
		o.TargetFileSizes[i] = min(size<<i, 128<<20)
		// Reading a block back costs as much as everything else that a hot read does,
		// and what stays for long is compressed in its segment.
		o.Levels[i].Compression = func() *block.CompressionProfile { return block.NoCompression }
	}
	later := newCompactions()
	o.Experimental.CompactionScheduler = later
	made := s.absent()
	// Pebble makes the directory and syncs its parents: one that was made before
	// this call would be gone after a power failure, and all writes with it.
	db, err := pebble.Open(s.dir, o)
	if err != nil {
		s.cache.Unref()
		if isLocked(err) {
			return fmt.Errorf("%w: %s", ErrLocked, s.dir)
		}
		return fmt.Errorf("open %s: %w", s.dir, err)
	}
	s.db = db
	later.begin()
	s.keepPrivate(made)
	return nil
}

// disk is where Pebble is. Compactions leave half of the reserve that appends leave.
func (s *Store) disk() vfs.FS {
	if s.opts.MinFreeBytes == 0 {
		return s.opts.FS
	}
	s.frugal = &frugalFS{FS: s.opts.FS, dir: s.dir, keep: s.opts.MinFreeBytes / 2, stop: s.stop}
	return s.frugal
}

// isLocked tells a lock that another has from a file that may not be opened.
func isLocked(err error) bool {
	if path := new(fs.PathError); errors.As(err, &path) {
		return false
	}
	// Pebble has no sentinel for a lock that this very process has.
	return strings.Contains(err.Error(), "lock held by current process") ||
		errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EWOULDBLOCK)
}

// seldom is for what Pebble repeats as fast as it can: the first ten are logged, then
// one every ten seconds. All are counted.
func seldom() *rate.Sometimes { return &rate.Sometimes{First: 10, Interval: 10 * time.Second} }

func (s *Store) events() *pebble.EventListener {
	corruptions := seldom()
	return &pebble.EventListener{
		BackgroundError: s.backgroundError,
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.metrics.corruptions.Inc()
			corruptions.Do(func() { s.log.Error("hot tier data is corrupt", "path", i.Path, "err", i.Details) })
		},
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			s.log.Warn("hot tier writes stall", "reason", i.Reason)
			s.metrics.stalls.Inc()
		},
		DiskSlow: func(i vfs.DiskSlowInfo) {
			s.log.Warn("disk is slow", "path", i.Path, "op", i.OpType.String(), "duration", i.Duration)
		},
	}
}

// backgroundError is told of failed flushes and compactions, which Pebble tries again
// without end. A full disk may get room, and a corrupt file harms only what is in it.
// After any other failure of the disk nothing that is written to it can be trusted,
// and writers would hang.
func (s *Store) backgroundError(err error) {
	s.metrics.backgroundErrors.Inc()
	if errors.Is(err, syscall.ENOSPC) || pebble.IsCorruptionError(err) || errors.Is(err, context.Canceled) {
		s.failing.Do(func() { s.log.Error("hot tier background work failed", "err", err) })
		return
	}
	s.fatal(fmt.Sprintf("background work: %v", err))
}

// pebbleLogger is what Pebble writes to. Its Fatalf must not return: Pebble would
// go on after a failed write and acknowledge what it has not kept.
type pebbleLogger struct {
	s      *Store
	errors *rate.Sometimes
}

func (l pebbleLogger) Infof(format string, args ...any) {
	l.s.log.Debug("pebble", "msg", fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.errors.Do(func() { l.s.log.Error("pebble", "err", fmt.Sprintf(format, args...)) })
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.s.fatal(fmt.Sprintf(format, args...))
}

// fatal ends the process: what is on disk is true, what is in memory may not be.
func (s *Store) fatal(msg string) {
	s.broken.Store(true)
	s.log.Error("hot tier failed, stopping", "err", msg)
	s.opts.Fatal(msg)
	// Fatal is not to return. If it does all the same, this goroutine ends here.
	runtime.Goexit()
}

// Bloated reports whether the files of data values take much more of the disk than
// the values that are left: over twice their size, and a memtable's.
func (s *Store) Bloated() (bool, error) {
	used, err := s.db.EstimateDiskUsage([]byte{kindData}, []byte{kindData + 1})
	if err != nil {
		return false, fmt.Errorf("estimate disk usage: %w", err)
	}
	return used > 2*s.HotBytes()+s.opts.MemTableBytes, nil
}

// ReclaimParts is into how many parts the data values are divided for [Store.Reclaim].
const ReclaimParts = 16

// Reclaim rewrites the data values of one part of the streams, of ReclaimParts, so
// that the space of deleted ranges goes back to the disk. It takes as long as writing
// the hot bytes of the part again.
func (s *Store) Reclaim(ctx context.Context, part int) error {
	if s.frugal != nil {
		s.frugal.retry()
	}
	// An incarnation begins with a hash: the parts are about equal.
	const width = 256 / ReclaimParts
	from, to := []byte{kindData, byte(part * width)}, []byte{kindData + 1}
	if part < ReclaimParts-1 {
		to = []byte{kindData, byte((part + 1) * width)}
	}
	if err := s.db.Compact(ctx, from, to, false); err != nil {
		return fmt.Errorf("reclaim space: %w", err)
	}
	return nil
}
