// Package mem keeps objects in memory. It is for tests: nothing outlives the
// process. It is strict where real stores are lenient, so that what passes here
// passes there: it copies what it is given, and a reader of an object that was
// replaced or deleted meanwhile still reads the old one.
package mem

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"firn/internal/blob"
)

// Options of a store. The zero value is usable.
type Options struct {
	// Now gives the time of writing; default time.Now.
	Now func() time.Time
}

// Store is a [blob.Store] in memory.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	objects map[string]object
	version uint64 // of the newest object, its ETag
}

type object struct {
	data []byte // never changed once stored
	info blob.Info
}

var _ blob.Store = (*Store)(nil)

// New returns an empty store.
func New(opts Options) *Store {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{now: opts.Now, objects: map[string]object{}}
}

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	if err := blob.CheckPut(key, opts); err != nil {
		return blob.Info{}, fmt.Errorf("put: %w", err)
	}
	data := make([]byte, body.Size())
	if _, err := io.ReadFull(io.NewSectionReader(body, 0, body.Size()), data); err != nil && len(data) > 0 {
		return blob.Info{}, fmt.Errorf("put %s: read body: %w", key, err)
	}
	if err := ctx.Err(); err != nil {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old, ok := s.objects[key]
	if opts.IfNoneMatch && ok {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, blob.ErrExists)
	}
	if opts.IfMatch != "" && (!ok || old.info.ETag != opts.IfMatch) {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, blob.ErrPrecondition)
	}
	s.version++
	info := blob.Info{Key: key, Size: int64(len(data)), ETag: strconv.FormatUint(s.version, 10)}
	stored := info
	stored.Modified = s.now()
	s.objects[key] = object{data: data, info: stored}
	return info, nil
}

// Get implements [blob.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := blob.CheckKey(key); err != nil {
		return nil, blob.Info{}, fmt.Errorf("get: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	s.mu.Lock()
	o, ok := s.objects[key]
	s.mu.Unlock()
	if !ok {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, blob.ErrNotFound)
	}
	start, length, err := blob.Resolve(off, n, o.info.Size)
	if err != nil {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return &reader{ctx: ctx, r: bytes.NewReader(o.data[start : start+length])}, o.info, nil
}

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	if err := ctx.Err(); err != nil {
		return blob.DeleteFailed(keys, err)
	}
	failed := map[string]error{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if err := blob.CheckKey(k); err != nil {
			failed[k] = err
			continue
		}
		delete(s.objects, k)
	}
	if len(failed) > 0 {
		return &blob.DeleteError{Failed: failed}
	}
	return nil
}

// List implements [blob.Store]. fn may call the store.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	s.mu.Lock()
	var infos []blob.Info
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		if strings.HasPrefix(k, prefix) && k > after {
			infos = append(infos, s.objects[k].info)
		}
	}
	s.mu.Unlock()
	for _, info := range infos {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		if err := fn(info); err != nil {
			return err
		}
	}
	return nil
}

// reader fails once its context has ended or it was closed, as a network body does.
type reader struct {
	ctx    context.Context
	r      *bytes.Reader
	closed bool
}

func (r *reader) Read(p []byte) (int, error) {
	if r.closed {
		return 0, fmt.Errorf("read of a closed object")
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

func (r *reader) Close() error {
	r.closed = true
	return nil
}
