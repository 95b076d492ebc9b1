package cold

import (
	"context"
	"fmt"

	"firn/pkg/segment"
)

// Read appends to dst the stored bytes [from, to) of a segment. Errors:
// [stream.ErrColdUnavailable], with [ErrMissing] or [segment.ErrCorrupt] where that
// is the reason; ctx's error. With an error dst holds the bytes before it.
func (s *Store) Read(ctx context.Context, dst []byte, ref segment.Ref, from, to uint64) ([]byte, error) {
	span, err := ref.Span(from, to)
	if err != nil {
		return dst, fmt.Errorf("read %s: %w", ref.Object, err)
	}
	// A few frames more than a GET fetches: their content must not all be held at
	// once when a range is long.
	for parts := span.Parts; len(parts) > 0; {
		n := s.batch(parts)
		if dst, err = s.readParts(ctx, dst, ref.Object, parts[:n]); err != nil {
			return dst, err
		}
		parts = parts[n:]
	}
	s.readOn(ref, span.Parts)
	return dst, nil
}

// batch is how many of the parts one GET may fetch: at least one.
func (s *Store) batch(parts []segment.Part) int {
	size := uint64(0)
	for i, p := range parts {
		if size += uint64(p.Length); size > s.opts.FetchBytes && i > 0 {
			return i
		}
	}
	return len(parts)
}

func (s *Store) readParts(ctx context.Context, dst []byte, object string, parts []segment.Part) ([]byte, error) {
	for i, f := range s.request(object, parts) {
		content, err := f.wait(ctx)
		if err != nil {
			return dst, err
		}
		dst = append(dst, parts[i].Cut(content)...)
	}
	return dst, nil
}
