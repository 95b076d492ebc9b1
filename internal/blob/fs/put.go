package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"firn/internal/blob"
)

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	if err := blob.CheckPut(key, opts); err != nil {
		return blob.Info{}, fmt.Errorf("put: %w", err)
	}
	info, err := s.put(ctx, key, body, opts)
	if err != nil {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return info, nil
}

func (s *Store) put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	tmp, modified, err := s.writeTemp(ctx, body)
	if err != nil {
		return blob.Info{}, err
	}
	defer os.Remove(tmp)

	path := filepath.Join(s.root, keyPath(key))
	place := func() error { return os.Link(tmp, path) }
	if !opts.IfNoneMatch {
		place = func() error {
			return s.exclusive(func() (err error) {
				modified, err = replace(tmp, path, modified, opts.IfMatch)
				return err
			})
		}
	}
	// The commit point. A crash before it leaves a file in .tmp; after it, the
	// object, though perhaps not yet durable: nobody has been told.
	if err := s.inFolder(filepath.Dir(path), place); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return blob.Info{}, blob.ErrExists
		}
		if errors.Is(err, blob.ErrPrecondition) {
			return blob.Info{}, err
		}
		return blob.Info{}, classify(err)
	}
	if err := s.syncFolders(filepath.Dir(path)); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return blob.Info{}, classify(err)
		}
		// A Delete of this very object took its folders away.
	}
	return blob.Info{Key: key, Size: body.Size(), ETag: etag(modified, body.Size())}, nil
}

// inFolder runs fn in a folder that exists. A Delete may remove the folder as soon
// as it is made, so this may take several turns.
func (s *Store) inFolder(dir string, fn func() error) error {
	for {
		err := fn()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, lost := os.Lstat(filepath.Join(s.root, tmpFolder)); lost != nil {
			return err // the store itself is gone
		}
		if err := s.makeFolders(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// writeTemp writes the body to a new file in .tmp and makes it durable.
func (s *Store) writeTemp(ctx context.Context, body blob.Body) (path string, modified time.Time, err error) {
	f, err := os.CreateTemp(filepath.Join(s.root, tmpFolder), "put-")
	if err != nil {
		return "", time.Time{}, classify(err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	src := &source{ctx: ctx, r: io.NewSectionReader(body, 0, body.Size())}
	n, err := copySynced(f, src)
	switch {
	case src.err != nil:
		return "", time.Time{}, src.err
	case err != nil:
		return "", time.Time{}, classify(err)
	case n != body.Size():
		return "", time.Time{}, fmt.Errorf("body has %d bytes, not %d", n, body.Size())
	}
	modified = s.now()
	err = errors.Join(os.Chtimes(f.Name(), modified, modified), f.Chmod(0o644), f.Sync())
	return f.Name(), modified, classify(err)
}

// syncStep is how much is written between two syncs.
const syncStep = 512 << 10

// copySynced copies all of src, and syncs on the way. A sync of a whole object at its end
// would hold up those of the write-ahead log for as long, where both are on one disk.
func copySynced(f *os.File, src io.Reader) (n int64, err error) {
	for err == nil {
		var step int64
		step, err = io.CopyN(f, src, syncStep)
		n += step
		if err == nil {
			err = f.Sync()
		}
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// replace renames tmp to path under the condition; the caller holds the lock. The
// time of a replacement is always later than that of what it replaces, whatever
// the clock says, because the ETag is made of it.
func replace(tmp, path string, modified time.Time, ifMatch string) (time.Time, error) {
	old, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if ifMatch != "" {
			return modified, blob.ErrPrecondition
		}
	case err != nil:
		return modified, err
	case ifMatch != "" && ifMatch != etag(old.ModTime(), old.Size()):
		return modified, blob.ErrPrecondition
	case !modified.After(old.ModTime()):
		modified = old.ModTime().Add(time.Nanosecond)
		if err := retime(tmp, modified); err != nil {
			return modified, err
		}
	}
	return modified, os.Rename(tmp, path)
}

func retime(path string, modified time.Time) error {
	if err := os.Chtimes(path, modified, modified); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// etag is made of what a replacement always changes.
func etag(modified time.Time, size int64) string {
	return strconv.FormatInt(modified.UnixNano(), 36) + "-" + strconv.FormatInt(size, 36)
}

// source reads a body until its context ends, and remembers its own errors, which
// are not the file system's.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return 0, err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = fmt.Errorf("read body: %w", err)
	}
	return n, err
}
