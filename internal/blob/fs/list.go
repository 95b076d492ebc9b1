package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"firn/internal/blob"
)

// List implements [blob.Store]. It holds the entries of one folder at each level
// in memory. Files that this store did not make are passed over.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	if err := s.missing(); !errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	return (&lister{ctx: ctx, prefix: prefix, after: after, fn: fn}).folder(s.root, "")
}

type lister struct {
	ctx           context.Context
	prefix, after string
	fn            func(blob.Info) error
}

// entry is a file, or a folder that holds the keys that begin with key.
type entry struct {
	key      string
	path     string
	isFolder bool
}

// folder lists the folder at path, whose keys all begin with base.
func (l *lister) folder(path, base string) error {
	entries, err := l.read(path, base)
	if err != nil {
		return fmt.Errorf("list %s: %w", l.prefix, classify(err))
	}
	// A folder's key ends in a slash, so no other key of this level lies between
	// the keys in it: sorting the level sorts the keys.
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for _, e := range entries {
		if err := l.ctx.Err(); err != nil {
			return fmt.Errorf("list %s: %w", l.prefix, err)
		}
		if err := l.visit(e); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) visit(e entry) error {
	if e.isFolder {
		return l.folder(e.path, e.key)
	}
	st, err := os.Lstat(e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // deleted meanwhile
	case err != nil:
		return fmt.Errorf("list %s: %w", l.prefix, classify(err))
	}
	return l.fn(describe(e.key, st))
}

// read returns the wanted entries of the folder at path, unsorted. Pieces of long
// segments are folders of the file system only, not of the keys: their entries
// belong to this level.
func (l *lister) read(path, base string) ([]entry, error) {
	names, err := os.ReadDir(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil // removed meanwhile
		}
		return nil, err
	}
	var entries []entry
	for _, d := range names {
		if !d.IsDir() && !d.Type().IsRegular() {
			continue
		}
		part, err := parseName(d.Name(), d.IsDir())
		if err != nil {
			continue
		}
		e := entry{key: base + part, path: filepath.Join(path, d.Name()), isFolder: d.IsDir()}
		if !l.wants(e) {
			continue
		}
		if d.IsDir() && !strings.HasSuffix(part, "/") {
			more, err := l.read(e.path, e.key)
			if err != nil {
				return nil, err
			}
			entries = append(entries, more...)
			continue
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// wants reports whether e is a wanted key, or a folder that may hold one.
func (l *lister) wants(e entry) bool {
	if !e.isFolder {
		return strings.HasPrefix(e.key, l.prefix) && e.key > l.after
	}
	if !strings.HasPrefix(e.key, l.prefix) && !strings.HasPrefix(l.prefix, e.key) {
		return false
	}
	return e.key >= l.after || strings.HasPrefix(l.after, e.key)
}
