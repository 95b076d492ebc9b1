// Package fs keeps objects as files below a folder.
//
// The invariant: a file under its final name is complete and durable. Objects are
// written to a file of their own in ".tmp", synced, and then get their name in one
// step, by link(2) where the key must be free and by rename(2) otherwise; then
// every folder on the way is synced. A crash leaves files in ".tmp", which are
// never listed and which a later Open removes.
//
// The names of ordinary keys are their paths (path.go), so that `zstd -dc` and
// query engines work on the files as they are. Several processes may use one
// folder; replacing and deleting is serialised by a lock on ".lock".
package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"firn/internal/blob"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Now gives the time of writing; default time.Now.
	Now func() time.Time
}

const (
	tmpFolder = ".tmp"
	lockFile  = ".lock"

	// staleAfter is the age from which a file in .tmp belongs to no Put that
	// could still be running.
	staleAfter = 24 * time.Hour
)

// Store is a [blob.Store] of files.
type Store struct {
	root string
	now  func() time.Time
	lock *os.File

	// mu is taken before the lock on lockFile, which holds between processes only.
	mu sync.Mutex
}

var _ blob.Store = (*Store)(nil)

// Open opens the store in a folder, which it makes if needed. It refuses, with
// blob.ErrNotSupported, a file system that does not tell upper from lower case:
// there two objects would share a file.
func Open(root string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open object folder: %w", err)
	}
	s := &Store{root: root, now: opts.Now}
	if err := s.makeFolders(filepath.Join(root, tmpFolder)); err != nil {
		return nil, fmt.Errorf("open object folder: %w", classify(err))
	}
	s.lock, err = os.OpenFile(filepath.Join(root, lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open object folder: %w", classify(err))
	}
	if err := errors.Join(s.checkCase(), s.removeStale()); err != nil {
		s.lock.Close()
		return nil, fmt.Errorf("open object folder: %w", err)
	}
	return s, nil
}

// Close releases the lock file. Files being read stay readable.
func (s *Store) Close() error { return s.lock.Close() }

func (s *Store) checkCase() error {
	f, err := os.CreateTemp(filepath.Join(s.root, tmpFolder), "case-a-")
	if err != nil {
		return classify(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	dir, name := filepath.Split(f.Name())
	if _, err := os.Lstat(filepath.Join(dir, "CASE-A-"+name[len("case-a-"):])); err == nil {
		return fmt.Errorf("%w: %s does not tell upper from lower case", blob.ErrNotSupported, s.root)
	}
	return nil
}

func (s *Store) removeStale() error {
	tmp := filepath.Join(s.root, tmpFolder)
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return classify(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && s.now().Sub(info.ModTime()) > staleAfter {
			err = os.Remove(filepath.Join(tmp, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return classify(err)
		}
	}
	return nil
}

// exclusive runs fn while no other replacement or deletion runs, in this process
// or another.
func (s *Store) exclusive(fn func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := flock(s.lock, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", s.lock.Name(), err)
	}
	defer flock(s.lock, syscall.LOCK_UN)
	return fn()
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// makeFolders makes dir and what is missing above it, up to the root and, at the
// first Open, beyond, and syncs the parent of each one it makes.
func (s *Store) makeFolders(dir string) error {
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.makeFolders(filepath.Dir(dir)); err != nil {
			return err
		}
		err = os.Mkdir(dir, 0o755)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

// syncFolders makes the entries of dir and of all folders up to the root durable.
// All of them, since another Put may have made one without having synced it yet.
func (s *Store) syncFolders(dir string) error {
	for {
		if err := syncFolder(dir); err != nil {
			return err
		}
		if dir == s.root {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// classify gives an error of the operating system its meaning.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS),
		errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return fmt.Errorf("%w: %w", blob.ErrDenied, err)
	case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
		return fmt.Errorf("%w: %w", blob.ErrNotSupported, err)
	}
	return fmt.Errorf("%w: %w", blob.ErrUnavailable, err)
}
