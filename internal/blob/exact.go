package blob

import (
	"context"
	"fmt"
	"io"
)

// Exactly returns a reader of the first n bytes of r that fails with [ErrCorrupt]
// if r ends earlier or has more. Errors of r pass as they are.
func Exactly(r io.ReadCloser, n int64) io.ReadCloser { return &exactReader{r: r, left: n} }

type exactReader struct {
	r    io.ReadCloser
	left int64
	err  error // sticky: what every further Read returns
}

func (x *exactReader) Read(p []byte) (int, error) {
	if x.err != nil {
		return 0, x.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if x.left == 0 {
		// Reading on to the end proves that there is no more, and lets the
		// transport check its own checksum before the caller sees io.EOF.
		var one [1]byte
		_, err := io.ReadFull(x.r, one[:])
		if err == nil {
			err = fmt.Errorf("%w: more bytes than promised", ErrCorrupt)
		}
		x.err = err
		return 0, err
	}
	n, err := x.r.Read(p[:min(int64(len(p)), x.left)])
	x.left -= int64(n)
	switch {
	case err == io.EOF && x.left > 0:
		x.err = fmt.Errorf("%w: %d bytes fewer than promised", ErrCorrupt, x.left)
	case err != nil:
		x.err = err
	}
	return n, x.err
}

func (x *exactReader) Close() error { return x.r.Close() }

// ReadAll returns the bytes of a Get. It holds them in memory: ask for no more
// than fits.
func ReadAll(ctx context.Context, s Store, key string, off, n int64) ([]byte, Info, error) {
	r, info, err := s.Get(ctx, key, off, n)
	if err != nil {
		return nil, Info{}, err
	}
	defer r.Close()
	_, length, err := Resolve(off, n, info.Size)
	if err != nil {
		return nil, Info{}, fmt.Errorf("get %s: %w: %w", key, ErrCorrupt, err)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			err = fmt.Errorf("%w: body ended early", ErrCorrupt)
		}
		return nil, Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	// The end must be seen, too: only there a failed checksum shows.
	if _, err := io.ReadFull(r, make([]byte, 1)); err != io.EOF {
		if err == nil {
			err = fmt.Errorf("%w: more bytes than promised", ErrCorrupt)
		}
		return nil, Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return b, info, nil
}
