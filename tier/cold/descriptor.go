package cold

import (
	"context"
	"errors"
	"fmt"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Descriptor reads what an object of segments says of itself. It takes one GET, two if
// it has many ranges. Errors: those of [Store.Read].
func (s *Store) Descriptor(ctx context.Context, key string) (*segment.Descriptor, error) {
	need := int64(segment.TailHint)
	for {
		tail, info, err := blob.ReadAll(ctx, s.blobs, key, -need, -1)
		if err != nil {
			s.failed(key, err)
			return nil, unavailable("read descriptor", key, err)
		}
		d, err := segment.ParseTail(tail, info.Size)
		var short *segment.ShortTailError
		if errors.As(err, &short) {
			need = short.Need
			continue
		}
		if err != nil {
			s.suspect(key, "cold data is damaged", "err", err)
			return nil, fmt.Errorf("read descriptor %s: %w: %w", key, stream.ErrColdUnavailable, err)
		}
		return d, nil
	}
}
