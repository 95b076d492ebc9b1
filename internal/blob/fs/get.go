package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"firn/internal/blob"
)

// Get implements [blob.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := blob.CheckKey(key); err != nil {
		return nil, blob.Info{}, fmt.Errorf("get: %w", err)
	}
	r, info, err := s.get(ctx, key, off, n)
	if err != nil {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return r, info, nil
}

func (s *Store) get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, blob.Info{}, err
	}
	f, err := os.Open(filepath.Join(s.root, keyPath(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.Info{}, s.missing()
	}
	if err != nil {
		return nil, blob.Info{}, classify(err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, blob.Info{}, classify(err)
	}
	start, length, err := blob.Resolve(off, n, st.Size())
	if err != nil {
		f.Close()
		return nil, blob.Info{}, err
	}
	r := &reader{ctx: ctx, f: f, r: io.NewSectionReader(f, start, length)}
	return blob.Exactly(r, length), describe(key, st), nil
}

// missing tells a missing object from a missing store: an unmounted disk must not
// look like objects that were deleted.
func (s *Store) missing() error {
	if _, err := os.Lstat(filepath.Join(s.root, tmpFolder)); err != nil {
		return fmt.Errorf("%w: object folder is gone: %w", blob.ErrUnavailable, err)
	}
	return blob.ErrNotFound
}

func describe(key string, st fs.FileInfo) blob.Info {
	return blob.Info{Key: key, Size: st.Size(), ETag: etag(st.ModTime(), st.Size()), Modified: st.ModTime()}
}

type reader struct {
	ctx context.Context
	f   *os.File
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF {
		err = classify(err)
	}
	return n, err
}

func (r *reader) Close() error { return r.f.Close() }
