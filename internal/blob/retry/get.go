package retry

import (
	"context"
	"errors"
	"fmt"
	"io"

	"firn/internal/blob"
)

// Get implements [blob.Store]. A body that breaks off is continued by another
// ranged Get of the same object, within the same bounds as the attempts of a call.
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	r := &reader{s: s, ctx: ctx, key: key}
	err := s.do(ctx, "get", func() error {
		var err error
		r.body, r.info, err = s.inner.Get(ctx, key, off, n)
		return err
	})
	if err != nil {
		return nil, blob.Info{}, err
	}
	r.off, r.left, err = blob.Resolve(off, n, r.info.Size)
	if err != nil {
		r.body.Close()
		return nil, blob.Info{}, fmt.Errorf("get %s: %w: %w", key, blob.ErrCorrupt, err)
	}
	if r.left == 0 {
		// Nothing can break off any more.
		r.body.Close()
		r.body = io.NopCloser(eof{})
	}
	return r, r.info, nil
}

type reader struct {
	s    *Store
	ctx  context.Context
	key  string
	info blob.Info

	body      io.ReadCloser
	off, left int64 // of what is still to be read
	got       int64 // bytes of the present body
	broken    int   // bodies in a row that failed before minProgress bytes
	err       error // sticky
}

// minProgress is how much a body has to give for its failure to count as the
// first one again: a store that trickles is not read for ever.
const minProgress = 1 << 20

func (r *reader) Read(p []byte) (int, error) {
	for r.err == nil {
		n, err := r.body.Read(p)
		r.off += int64(n)
		r.left -= int64(n)
		r.got += int64(n)
		if err == io.EOF && r.left > 0 {
			err = fmt.Errorf("get %s: %w: body ended early", r.key, blob.ErrCorrupt)
		}
		switch {
		case r.left == 0 && errors.Is(err, blob.ErrUnavailable) && r.ctx.Err() == nil:
			r.err = io.EOF // broken off after the last byte
		case err != nil && blob.Retryable(err) && r.left > 0:
			r.resume(err)
		case err != nil:
			r.err = err
		}
		if n > 0 || len(p) == 0 {
			return n, nil // an error comes with the next Read
		}
	}
	return 0, r.err
}

// resume replaces a body that failed with cause by one of the rest, or sets err.
func (r *reader) resume(cause error) {
	r.body.Close()
	r.body = io.NopCloser(eof{})
	if r.broken++; r.got >= minProgress {
		r.broken = 1
	}
	r.got = 0
	if r.broken >= r.s.opts.Attempts {
		r.err = cause
		return
	}
	r.s.breaker.count(outcomeOf(r.ctx, cause))
	r.s.trouble.note(r.ctx, r.s.opts.Now(), cause)
	d, ok := r.s.delay(r.broken, cause)
	if !ok || r.ctx.Err() != nil {
		r.err = cause
		return
	}
	r.s.metrics.retries.WithLabelValues("body").Inc()
	if err := r.s.opts.Wait(r.ctx, d); err != nil {
		r.err = fmt.Errorf("%w: %w", err, cause)
		return
	}
	err := r.s.do(r.ctx, "get", func() error {
		body, info, err := r.s.inner.Get(r.ctx, r.key, r.off, r.left)
		if err != nil {
			return err
		}
		if info.ETag != r.info.ETag || info.Size != r.info.Size {
			body.Close()
			return errReplaced
		}
		r.body = body
		return nil
	})
	if errors.Is(err, errReplaced) {
		// The same Get made anew would succeed.
		err = fmt.Errorf("get %s: %w: %w", r.key, blob.ErrUnavailable, err)
	}
	r.err = err
}

func (r *reader) Close() error {
	if r.err == nil {
		r.err = errClosed
	}
	return r.body.Close()
}

var errReplaced = errors.New("object was replaced after its transfer broke off")

var errClosed = errors.New("read of a closed object")

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
