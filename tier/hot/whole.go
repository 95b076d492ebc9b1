package hot

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// checkFiles refuses a directory that has lost what Pebble would not miss: without its
// marker Pebble begins anew, over the files that are there, and takes tables that
// nothing names for garbage. A first start that was cut off has neither tables nor logs.
// Without any log Pebble takes what was in it for never written; as a crash within a
// start was seen to leave that too, with nothing lost, it is only told. Errors:
// [ErrDamaged].
func (s *Store) checkFiles() error {
	names, err := s.opts.FS.List(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", s.dir, err)
	}
	var marker, table, log bool
	for _, n := range names {
		marker = marker || strings.HasPrefix(n, "marker.manifest.")
		table = table || strings.HasSuffix(n, ".sst")
		log = log || strings.HasSuffix(n, ".log")
	}
	switch {
	case !marker && (table || log):
		return fmt.Errorf("%w: %s has tables or logs, but not the marker.manifest file that says which count; bring it back, or restore the directory", ErrDamaged, s.dir)
	case table && !log:
		s.log.Error("there is no write-ahead log: if somebody removed it, the newest appends are lost; stop and bring it back", "dir", s.dir)
	}
	return nil
}
