package backup

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"firn/internal/blob"
	"firn/tier/hot"
)

// Point is one copy as the listing shows it.
type Point struct {
	// Ms is its moment, since 1970.
	Ms uint64
	// Stop: the server had stopped, and nothing came after it.
	Stop bool
	// keys are those of its objects, in order.
	keys []string
}

// Chain is a generation as the listing shows it: a base and the deltas after it.
type Chain struct {
	Generation hot.Generation
	// Points are its complete copies, oldest first. Without a base there are none.
	Points []Point
	// Torn are objects of a copy whose last one is not there.
	Torn []string
}

// chainsOf lists the generations of a store, oldest first.
func chainsOf(ctx context.Context, blobs blob.Store, store string) ([]Chain, error) {
	var (
		chains []Chain
		parts  []string
	)
	err := blobs.List(ctx, prefixOf(store), "", func(i blob.Info) error {
		n, ok := parseName(store, i.Key)
		if !ok {
			return nil
		}
		if len(chains) == 0 || chains[len(chains)-1].Generation != n.generation {
			if len(chains) > 0 {
				chains[len(chains)-1].Torn = parts
			}
			chains, parts = append(chains, Chain{Generation: n.generation}), nil
		}
		c := &chains[len(chains)-1]
		parts = append(parts, i.Key)
		if n.kind == Part || len(c.Points) == 0 && n.kind != Base {
			return nil
		}
		c.Points = append(c.Points, Point{Ms: n.ms, Stop: n.kind == Stop, keys: parts})
		parts = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list copies: %w", err)
	}
	if len(chains) > 0 {
		chains[len(chains)-1].Torn = parts
	}
	return chains, nil
}

// reader reads the copies of one generation.
type reader struct {
	blobs blob.Store
	dec   *zstd.Decoder
	store string
	// applied are the objects so far, by sequence.
	applied map[uint64]uint32
	// life is the highest that an object tells of.
	life uint64
}

func newReader(blobs blob.Store, store string) (*reader, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxEntries))
	if err != nil {
		return nil, fmt.Errorf("make decoder: %w", err)
	}
	return &reader{blobs: blobs, dec: dec, store: store, applied: make(map[uint64]uint32)}, nil
}

// get reads and verifies an object. Errors: [ErrDamaged], [ErrVersion], those of the
// bucket.
func (r *reader) get(ctx context.Context, key string) (*object, error) {
	body, info, err := r.blobs.Get(ctx, key, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, fmt.Errorf("%s: %w: it is not there", key, ErrDamaged)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close()
	if info.Size > maxObject {
		return nil, fmt.Errorf("%s: %w: it has %d bytes", key, ErrDamaged, info.Size)
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key, err)
	}
	o, err := decode(r.dec, b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if n, ok := parseName(r.store, key); !ok || n != o.name || o.store != r.store {
		return nil, fmt.Errorf("%s: %w: it says of itself that it is another object", key, ErrDamaged)
	}
	return o, nil
}

// load applies the objects of a copy. Whatever it follows must have been applied.
func (r *reader) load(ctx context.Context, p Point, fn func(hot.CopyEntry) error) error {
	for _, key := range p.keys {
		o, err := r.get(ctx, key)
		if err != nil {
			return err
		}
		if first := len(r.applied) == 0; first != (o.prev == noLink) {
			return fmt.Errorf("%s: %w: the one before it is missing", key, ErrDamaged)
		} else if crc, ok := r.applied[o.prev.seq]; !first && (!ok || crc != o.prev.crc) {
			return fmt.Errorf("%s: %w: what it follows, number %d, is missing", key, ErrDamaged, o.prev.seq)
		}
		if err := o.each(fn); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		r.applied[o.seq] = o.crc
		r.life = max(r.life, o.life)
	}
	return nil
}
