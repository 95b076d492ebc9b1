package compactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Sealing is one segment on its way to the cold tier. Its steps are taken in order:
// Intend, Upload, Commit. After any step but a Commit that returned nil it may be
// dropped by Abandon, or forgotten in a crash.
type Sealing struct {
	c      *Compactor
	id     stream.ID
	key    string
	sealed *segment.Sealed
	size   uint64
}

// errFull ends the walk over a stream's values: the segment is large enough.
var errFull = errors.New("segment is full")

// Build compresses a stream's oldest unsealed bytes, about a target's worth. It
// returns nil when there are none.
func (c *Compactor) Build(id stream.ID) (*Sealing, error) {
	v := c.hot.View()
	defer v.Close()
	rec, err := v.Incarnation(id)
	if errors.Is(err, stream.ErrNotFound) || err == nil && rec.Unsealed() == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	meta := segment.Meta{
		Store: c.hot.ID(), Name: rec.Name, Incarnation: rec.ID, Life: rec.Life, Mode: rec.Mode,
		ContentType: rec.ContentType, CreatedMs: rec.CreatedAt, From: rec.Sealed,
	}
	w := c.opts.Encoder.NewWriter(meta)
	size := uint64(0)
	err = v.Values(rec.ID, rec.Sealed, rec.Tail, func(ms uint64, payload []byte) error {
		if err := w.Append(payload, ms); err != nil {
			return err
		}
		size += uint64(len(payload))
		if size >= c.opts.Policy.Target && (rec.Mode != stream.JSON || payload[len(payload)-1] == '\n') {
			return errFull
		}
		return nil
	})
	if err != nil && err != errFull {
		w.Abort()
		return nil, fmt.Errorf("read bytes to seal: %w", err)
	}
	sealed, err := w.Finish()
	if err != nil {
		return nil, fmt.Errorf("build segment: %w", err)
	}
	key := c.opts.Cold.SegmentKey(rec.Name, rec.ID, rec.Mode, rec.Sealed, rec.Sealed+size)
	sealed.Name(key)
	return &Sealing{c: c, id: id, key: key, sealed: sealed}, nil
}

// Intend records the object in the catalog before it exists.
func (s *Sealing) Intend(ctx context.Context) error {
	if err := s.c.hot.Intend(ctx, s.key); err != nil {
		return fmt.Errorf("intend segment: %w", err)
	}
	return nil
}

// Upload writes the object and verifies what the store has of it.
func (s *Sealing) Upload(ctx context.Context) (err error) {
	s.size, err = s.c.opts.Cold.PutSegment(ctx, s.key, s.sealed)
	return err
}

// Commit names the segment. [hot.ErrConflict] means that the stream has changed so
// that it does not apply: it is gone, or somebody else has sealed these bytes.
func (s *Sealing) Commit(ctx context.Context) error {
	return s.c.hot.Seal(ctx, hot.Seal{ID: s.id, Ref: s.sealed.Refs[0], Size: s.size})
}

// Abandon gives an intended object to the sweep.
func (s *Sealing) Abandon(ctx context.Context) error {
	return s.c.hot.Abandon(context.WithoutCancel(ctx), s.key)
}

// Release gives the segment's memory back. The Sealing must not be used afterwards.
func (s *Sealing) Release() { s.sealed.Release() }

// sealOne takes all steps for one segment of a stream. It reports how many bytes
// were sealed, 0 when there was nothing to seal or somebody else did it.
func (c *Compactor) sealOne(ctx context.Context, id stream.ID) (uint64, error) {
	start := time.Now()
	s, err := c.Build(id)
	if err != nil || s == nil {
		return 0, err
	}
	defer s.Release()
	if err := s.Intend(ctx); err != nil {
		return 0, err
	}
	err = s.Upload(ctx)
	if err == nil {
		err = s.Commit(ctx)
	}
	if err != nil {
		if aerr := s.Abandon(ctx); aerr != nil {
			c.log.Warn("cannot abandon segment", "key", s.key, "err", aerr)
		}
		if errors.Is(err, hot.ErrConflict) {
			c.metrics.seals.WithLabelValues("conflict").Inc()
			return 0, nil
		}
		c.metrics.seals.WithLabelValues("failed").Inc()
		return 0, err
	}
	ref := &s.sealed.Refs[0]
	n := ref.To - ref.From
	c.metrics.seals.WithLabelValues("done").Inc()
	c.metrics.sealedBytes.Add(float64(n))
	c.metrics.objectBytes.Add(float64(s.size))
	c.metrics.sealSeconds.Observe(time.Since(start).Seconds())
	c.log.Debug("segment sealed", "stream", id.String(), "from", ref.From, "to", ref.To, "key", s.key)
	return n, nil
}

// SealStream seals all bytes that a stream has at the moment. Errors:
// [stream.ErrNotFound], [ErrSealingOff], those of the object store.
func (c *Compactor) SealStream(ctx context.Context, id stream.ID) error {
	if c.opts.SealingOff {
		return ErrSealingOff
	}
	rec, err := c.record(id)
	if err != nil {
		return err
	}
	tail := rec.Tail
	for rec.Sealed < tail {
		if err := c.opts.Cold.CheckOwner(ctx); err != nil {
			return err
		}
		if _, err := c.sealOne(ctx, id); err != nil {
			return err
		}
		if rec, err = c.record(id); err != nil {
			return err
		}
	}
	return nil
}

// EvictStream gives up the hot copies of all of a stream's sealed bytes. Errors:
// [stream.ErrNotFound].
func (c *Compactor) EvictStream(ctx context.Context, id stream.ID) error {
	rec, err := c.record(id)
	if err != nil {
		return err
	}
	return c.evict(ctx, hot.Held{ID: id, From: rec.Cut, To: rec.Sealed})
}

func (c *Compactor) record(id stream.ID) (*hot.Record, error) {
	v := c.hot.View()
	defer v.Close()
	return v.Incarnation(id)
}
