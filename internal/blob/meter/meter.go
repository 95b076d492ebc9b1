// Package meter counts and times the calls of a store. It is the only place that
// measures them, so every call that reaches a store goes through one.
package meter

import (
	"context"
	"errors"
	"io"
	"time"

	"firn/internal/blob"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of the wrapper. The zero value is usable.
type Options struct {
	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer
	// Now is for tests; default time.Now.
	Now func() time.Time
}

// Store wraps a store.
type Store struct {
	inner   blob.Store
	now     func() time.Time
	metrics *metrics
}

var _ blob.Store = (*Store)(nil)

// New wraps a store.
func New(inner blob.Store, opts Options) *Store {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Store{inner: inner, now: opts.Now, metrics: newMetrics(opts.Registerer)}
}

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	end := s.begin("put")
	info, err := s.inner.Put(ctx, key, body, opts)
	if err == nil {
		s.metrics.written.Add(float64(body.Size()))
	}
	end(err)
	return info, err
}

// Get implements [blob.Store]. Its time ends when the body begins, its result is
// known when the body ends.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	s.metrics.inFlight.Inc()
	start := s.now()
	r, info, err := s.inner.Get(ctx, key, off, n)
	s.metrics.seconds.WithLabelValues("get").Observe(s.now().Sub(start).Seconds())
	if err != nil {
		s.end("get", err)
		return nil, info, err
	}
	return &reader{ReadCloser: r, s: s}, info, nil
}

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	end := s.begin("delete")
	err := s.inner.Delete(ctx, keys...)
	left := 0
	var de *blob.DeleteError
	if errors.As(err, &de) {
		left = len(de.Failed)
	} else if err != nil {
		left = len(keys)
	}
	s.metrics.deleted.Add(float64(max(len(keys)-left, 0)))
	end(err)
	return err
}

// List implements [blob.Store]. Its time includes that of fn.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	end := s.begin("list")
	var fnErr error
	err := s.inner.List(ctx, prefix, after, func(info blob.Info) error {
		fnErr = fn(info)
		return fnErr
	})
	if fnErr != nil {
		end(nil) // the store did its part
	} else {
		end(err)
	}
	return err
}

func (s *Store) begin(op string) (end func(error)) {
	s.metrics.inFlight.Inc()
	start := s.now()
	return func(err error) {
		s.metrics.seconds.WithLabelValues(op).Observe(s.now().Sub(start).Seconds())
		s.end(op, err)
	}
}

func (s *Store) end(op string, err error) {
	s.metrics.inFlight.Dec()
	s.metrics.calls.WithLabelValues(op, result(err)).Inc()
}

type reader struct {
	io.ReadCloser
	s     *Store
	ended bool
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.s.metrics.read.Add(float64(n))
	if err == io.EOF {
		r.end(nil)
	} else if err != nil {
		r.end(err)
	}
	return n, err
}

// Close counts a body that was not read to its end as a success: its reader had
// enough.
func (r *reader) Close() error {
	r.end(nil)
	return r.ReadCloser.Close()
}

func (r *reader) end(err error) {
	if !r.ended {
		r.ended = true
		r.s.end("get", err)
	}
}
