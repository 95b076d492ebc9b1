package hot

import (
	"sync/atomic"

	"firn/pkg/stream"
)

// watchSpace refuses appends while the disk has less free space than the reserve:
// Pebble needs room to flush, to compact and to recover, and hangs without it.
func (s *Store) watchSpace() {
	if s.opts.MinFreeBytes == 0 {
		return
	}
	u, err := s.opts.FS.GetDiskUsage(s.dir)
	if err != nil {
		return
	}
	full := u.AvailBytes < s.opts.MinFreeBytes
	if s.full.Swap(full) == full {
		return
	}
	if full {
		s.log.Error("disk is nearly full, appends are refused", "dir", s.dir, "free", u.AvailBytes, "reserve", s.opts.MinFreeBytes)
	} else {
		s.log.Info("disk has room again, appends are taken", "dir", s.dir, "free", u.AvailBytes)
	}
}

// room refuses bytes that the hot tier must not take: [stream.ErrHotFull]. It looks
// at what is there, not at n: an append that is larger than what is left is taken, so
// that one which is larger than the limit itself is not refused for ever.
func (s *Store) room(n int) error {
	if n == 0 {
		return nil
	}
	if s.full.Load() || s.opts.HardBytes > 0 && s.HotBytes() >= s.opts.HardBytes {
		atomic.AddUint64(&s.metrics.refused, 1)
		return stream.ErrHotFull
	}
	return nil
}

// DiskFull reports whether the disk has less free space than the reserve.
func (s *Store) DiskFull() bool { return s.full.Load() }

// Full reports why appends are refused: "" when they are not.
func (s *Store) Full() string {
	switch {
	case s.full.Load():
		return "disk is below its reserve of free space"
	case s.opts.HardBytes > 0 && s.HotBytes() >= s.opts.HardBytes:
		return "hot bytes are at their hard limit"
	}
	return ""
}
