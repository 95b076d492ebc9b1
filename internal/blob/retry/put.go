package retry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"firn/internal/blob"
)

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (info blob.Info, err error) {
	unsettled := false // an earlier attempt may have written the object
	err = s.do(ctx, "put", func() error {
		var err error
		info, err = s.inner.Put(ctx, key, body, opts)
		if unsettled && (errors.Is(err, blob.ErrExists) || errors.Is(err, blob.ErrPrecondition)) {
			if own, cerr := s.holds(ctx, key, body); cerr != nil {
				return fmt.Errorf("put %s: tell own object from a rival's: %w", key, cerr)
			} else if own != nil {
				info, err = *own, nil
			}
		}
		unsettled = unsettled || blob.Retryable(err)
		return err
	})
	if err != nil {
		return blob.Info{}, err
	}
	return info, nil
}

// holds returns what Put would have returned if the store has exactly these bytes
// under the key, and nil if it has others or none.
func (s *Store) holds(ctx context.Context, key string, body blob.Body) (*blob.Info, error) {
	r, info, err := s.inner.Get(ctx, key, 0, -1)
	switch {
	case errors.Is(err, blob.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer r.Close()
	if info.Size != body.Size() {
		return nil, nil
	}
	same, err := equal(blob.Exactly(r, info.Size), io.NewSectionReader(body, 0, body.Size()))
	if err != nil || !same {
		return nil, err
	}
	return &blob.Info{Key: key, Size: info.Size, ETag: info.ETag}, nil
}

// equal compares two readers of the same length.
func equal(a, b io.Reader) (bool, error) {
	bufA, bufB := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, bufA)
		m, errB := io.ReadFull(b, bufB)
		ended := func(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
		switch {
		case errA != nil && !ended(errA):
			return false, errA
		case errB != nil && !ended(errB):
			return false, fmt.Errorf("read body: %w", errB)
		case !bytes.Equal(bufA[:n], bufB[:m]):
			return false, nil
		case errA != nil:
			return true, nil
		}
	}
}
