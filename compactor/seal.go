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

// Sealing is one object of segments on its way to the cold tier. Its steps are taken in
// order: Intend, Upload, Commit. After any step but a Commit that returned nil it may
// be dropped by Abandon, or forgotten in a crash.
type Sealing struct {
	c       *Compactor
	ids     []stream.ID
	key     string
	sealed  *segment.Sealed
	content uint64
	size    uint64
	// was are the segments, of each stream, in whose place these come; nil when new
	// bytes are sealed.
	was [][]hot.Piece

	// What Commit has named.
	named  uint64 // bytes
	passed int    // streams that have changed
}

// Intend records the object in the catalog before it exists.
func (s *Sealing) Intend(ctx context.Context) error {
	if err := s.c.hot.Intend(ctx, s.key); err != nil {
		return fmt.Errorf("intend segment: %w", err)
	}
	return nil
}

// Upload writes the object and verifies what the store has of it. The intent may be old,
// and what the catalog has forgotten would stay in the store, known to nobody: so it is
// prolonged first. [hot.ErrConflict] means that it was given up, and nothing is written.
func (s *Sealing) Upload(ctx context.Context) (err error) {
	if err := s.c.hot.Prolong(ctx, s.key); err != nil {
		if errors.Is(err, hot.ErrConflict) {
			s.passed = len(s.ids)
		}
		return fmt.Errorf("prolong intent: %w", err)
	}
	s.size, err = s.c.opts.Cold.PutSegment(ctx, s.key, s.sealed)
	return err
}

// Commit names the segments, those of several streams in steps. [hot.ErrConflict] means
// that the streams have changed so that none applies: they are gone, or somebody else
// has sealed or replaced these bytes.
func (s *Sealing) Commit(ctx context.Context) error {
	if s.was != nil {
		return s.commitReplacements(ctx)
	}
	if len(s.ids) == 1 {
		err := s.c.hot.Seal(ctx, hot.Seal{ID: s.ids[0], Ref: s.sealed.Refs[0], Size: s.size})
		switch {
		case err == nil:
			s.named = s.content
		case errors.Is(err, hot.ErrConflict):
			s.passed = 1
		}
		return err
	}
	parts := make([]hot.Part, len(s.ids))
	for i, id := range s.ids {
		parts[i] = hot.Part{ID: id, Ref: s.sealed.Refs[i]}
	}
	for len(parts) > 0 {
		n := min(hot.PackStep, len(parts))
		if err := s.commitStep(ctx, parts[:n]); err != nil {
			return err
		}
		parts = parts[n:]
	}
	if s.named == 0 {
		return hot.ErrConflict
	}
	return nil
}

// commitStep names some of the segments. It is no error that none of them applies:
// others may.
func (s *Sealing) commitStep(ctx context.Context, parts []hot.Part) error {
	r, err := s.c.hot.SealPack(ctx, hot.SealPack{Pack: s.pack(), Parts: parts})
	return s.count(parts, r, err)
}

func (s *Sealing) pack() hot.Pack {
	return hot.Pack{Object: s.key, Size: s.size, Content: s.content}
}

// count notes what a step has named.
func (s *Sealing) count(parts []hot.Part, r hot.PackResult, err error) error {
	if errors.Is(err, hot.ErrConflict) {
		s.passed += len(parts)
		return nil
	}
	if err != nil {
		return err
	}
	s.passed += len(r.Passed)
	passed := r.Passed // in the order of the parts
	for _, p := range parts {
		if len(passed) > 0 && passed[0] == p.ID {
			passed = passed[1:]
			continue
		}
		s.named += p.Ref.To - p.Ref.From
	}
	return nil
}

// Abandon gives an intended object to the sweep.
func (s *Sealing) Abandon(ctx context.Context) error {
	return s.c.hot.Abandon(context.WithoutCancel(ctx), s.key)
}

// Release gives the object's memory back. The Sealing must not be used afterwards.
func (s *Sealing) Release() { s.sealed.Release() }

// take takes all steps, and abandons the object if one fails. A conflict is no error:
// the object is given up, the streams are as they were.
func (s *Sealing) take(ctx context.Context) error {
	if err := s.Intend(ctx); err != nil {
		return err
	}
	err := s.Upload(ctx)
	if err == nil {
		err = s.Commit(ctx)
	}
	if err == nil {
		return nil
	}
	if aerr := s.Abandon(ctx); aerr != nil {
		s.c.log.Warn("cannot abandon segment", "key", s.key, "err", aerr)
	}
	if errors.Is(err, hot.ErrConflict) {
		return nil
	}
	return err
}

// sealAll takes all steps for one object of streams. It reports how many bytes were
// sealed, 0 when there was nothing to seal or somebody else did it.
func (c *Compactor) sealAll(ctx context.Context, ids []stream.ID) (uint64, error) {
	start := time.Now()
	s, err := c.Build(ids...)
	if err != nil || s == nil {
		return 0, err
	}
	defer s.Release()
	if err := s.take(ctx); err != nil {
		c.metrics.seals.WithLabelValues("failed").Inc()
		return 0, err
	}
	c.metrics.seals.WithLabelValues("conflict").Add(float64(s.passed))
	if s.named == 0 {
		return 0, nil
	}
	c.metrics.seals.WithLabelValues("done").Add(float64(len(s.ids) - s.passed))
	c.metrics.sealedObjects.Inc()
	c.metrics.sealedBytes.Add(float64(s.named))
	c.metrics.objectBytes.Add(float64(s.size))
	c.metrics.sealSeconds.Observe(time.Since(start).Seconds())
	c.log.Debug("segments sealed", "streams", len(s.ids), "bytes", s.named, "key", s.key)
	return s.named, nil
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
		if _, err := c.sealAll(ctx, []stream.ID{id}); err != nil {
			return err
		}
		if rec, err = c.record(id); err != nil {
			return err
		}
	}
	return nil
}

// EvictStream gives up the hot copies of a stream's sealed bytes, up to what is in an
// object that is known to be damaged. Errors: [stream.ErrNotFound].
func (c *Compactor) EvictStream(ctx context.Context, id stream.ID) error {
	v := c.hot.View()
	rec, err := v.Incarnation(id)
	to := uint64(0)
	if err == nil {
		to, err = sound(v, id, rec.Cut, rec.Sealed)
	}
	v.Close()
	if err != nil {
		return err
	}
	return c.evict(ctx, hot.Held{ID: id, From: rec.Cut, To: to})
}

func (c *Compactor) record(id stream.ID) (*hot.Record, error) {
	v := c.hot.View()
	defer v.Close()
	return v.Incarnation(id)
}
