// Package limit bounds how many calls of a store run at once.
//
// A call waits for a slot, as long as its context lets it, before it begins. A Get
// keeps its slot until its body is closed or has ended: whoever keeps bodies open
// while it makes other calls can starve itself.
package limit

import (
	"context"
	"fmt"
	"io"
	"sync"

	"firn/internal/blob"
)

// DefaultCalls is the bound when Options name none.
const DefaultCalls = 64

// Options of the wrapper. The zero value is usable.
type Options struct {
	// Calls bounds the calls that run at once; default [DefaultCalls].
	Calls int
}

// Store wraps a store.
type Store struct {
	inner blob.Store
	slots chan struct{}
}

var _ blob.Store = (*Store)(nil)

// New wraps a store.
func New(inner blob.Store, opts Options) *Store {
	if opts.Calls <= 0 {
		opts.Calls = DefaultCalls
	}
	return &Store{inner: inner, slots: make(chan struct{}, opts.Calls)}
}

func (s *Store) acquire(ctx context.Context) error {
	// A context that has ended must not win a free slot by chance.
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for a call slot: %w", err)
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for a call slot: %w", ctx.Err())
	}
}

func (s *Store) release() { <-s.slots }

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	if err := s.acquire(ctx); err != nil {
		return blob.Info{}, err
	}
	defer s.release()
	return s.inner.Put(ctx, key, body, opts)
}

// Get implements [blob.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, blob.Info{}, err
	}
	r, info, err := s.inner.Get(ctx, key, off, n)
	if err != nil {
		s.release()
		return nil, blob.Info{}, err
	}
	return &reader{ReadCloser: r, release: sync.OnceFunc(s.release)}, info, nil
}

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	if err := s.acquire(ctx); err != nil {
		return blob.DeleteFailed(keys, err)
	}
	defer s.release()
	return s.inner.Delete(ctx, keys...)
}

// List implements [blob.Store]. It keeps its slot while fn runs.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	return s.inner.List(ctx, prefix, after, fn)
}

type reader struct {
	io.ReadCloser
	release func()
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil {
		r.release()
	}
	return n, err
}

func (r *reader) Close() error {
	defer r.release()
	return r.ReadCloser.Close()
}
