package hot

import (
	"errors"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Modes of the store's directory: the keys that sign webhooks are in it (B§6.5), and
// what was appended.
const (
	private   fs.FileMode = 0o700
	forOthers fs.FileMode = 0o007 // who have nothing to do with it
)

// absent reports whether the directory is still to be made.
func (s *Store) absent() bool {
	_, err := os.Stat(s.dir)
	return s.opts.FS == vfs.Default && errors.Is(err, fs.ErrNotExist)
}

// keepPrivate gives a directory that was just made to its owner alone; nothing secret
// is in it yet. One that was there keeps its mode, as its owner may mean it.
func (s *Store) keepPrivate(made bool) {
	if s.opts.FS != vfs.Default {
		return // it has no users
	}
	var err error
	if made {
		err = os.Chmod(s.dir, private)
	}
	if i, serr := os.Stat(s.dir); err != nil || serr != nil || i.Mode()&forOthers != 0 {
		s.log.Warn("other users of this machine may read the hot tier and its secret keys", "path", s.dir, "err", errors.Join(err, serr))
	}
}
