package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"firn/internal/blob"
)

// Delete implements [blob.Store]. Folders that become empty go as well.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	failed := map[string]error{}
	for _, k := range keys {
		if err := s.delete(ctx, k); err != nil {
			failed[k] = err
		}
	}
	if len(failed) > 0 {
		return &blob.DeleteError{Failed: failed}
	}
	return nil
}

func (s *Store) delete(ctx context.Context, key string) error {
	if err := errors.Join(blob.CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	path := filepath.Join(s.root, keyPath(key))
	if err := s.exclusive(func() error { return os.Remove(path) }); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return classify(err)
		}
		if err := s.missing(); !errors.Is(err, blob.ErrNotFound) {
			return err
		}
	}
	// An earlier Delete may have removed the file and crashed before this sync,
	// so it is done for a missing file, too.
	if err := s.syncNearest(filepath.Dir(path)); err != nil {
		return fmt.Errorf("sync: %w", classify(err))
	}
	return nil
}

// syncNearest removes empty folders from dir upwards, and makes the removal of
// the topmost one, or of a file in dir, durable.
func (s *Store) syncNearest(dir string) error {
	for dir != s.root {
		// Fails for a folder that is not empty; one that is gone is as good as removed.
		if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	err := syncFolder(dir)
	if errors.Is(err, fs.ErrNotExist) && dir != s.root {
		return s.syncNearest(dir) // a rival removed it
	}
	return err
}
