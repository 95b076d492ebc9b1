package compactor

import (
	"errors"
	"fmt"
	"slices"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// errFull ends the walk over a stream's values: there is enough.
var errFull = errors.New("range is full")

// Build compresses the oldest unsealed bytes of streams of one bucket and mode into one
// object: about a target's worth of a single stream, a quarter of each of several. It
// returns nil when there are none. A stream of several whose bytes cannot be read is
// left out, and rests.
func (c *Compactor) Build(ids ...stream.ID) (*Sealing, error) {
	limit := c.opts.Policy.Target
	if len(ids) > 1 {
		limit = max(limit/4, 1)
		ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	}
	for {
		b := builder{c: c, limit: limit}
		bad, err := b.addAll(ids)
		if err == nil {
			return b.finish()
		}
		b.abort()
		if len(ids) == 1 {
			return nil, err
		}
		c.mu.Lock()
		c.rest(bad, err)
		c.mu.Unlock()
		ids = slices.DeleteFunc(ids, func(id stream.ID) bool { return id == bad })
	}
}

// builder makes the object of a Sealing.
type builder struct {
	c     *Compactor
	limit uint64 // bytes of each stream, about
	w     *segment.Writer
	first *hot.Record
	ids   []stream.ID // in the order of their ranges
	bytes uint64      // of all
}

// addAll adds streams until the object is full; what is left over is due in the next
// pass. With an error it returns the stream that is at fault.
func (b *builder) addAll(ids []stream.ID) (stream.ID, error) {
	for _, id := range ids {
		if err := b.add(id); errors.Is(err, segment.ErrFull) {
			break
		} else if err != nil {
			return id, err
		}
	}
	return 0, nil
}

func (b *builder) add(id stream.ID) error {
	v := b.c.hot.View()
	defer v.Close()
	rec, err := v.Peek(id)
	if errors.Is(err, stream.ErrNotFound) || err == nil && rec.Unsealed() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.begin(rec, rec.Sealed); err != nil {
		return err
	}
	size := uint64(0)
	err = v.Values(rec.ID, rec.Sealed, rec.Tail, func(ms uint64, payload []byte) error {
		if err := b.w.Append(payload, ms); err != nil {
			return err
		}
		size += uint64(len(payload))
		if size >= b.limit && (rec.Mode != stream.JSON || payload[len(payload)-1] == '\n') {
			return errFull
		}
		return nil
	})
	if err != nil && err != errFull {
		return fmt.Errorf("read bytes to seal: %w", err)
	}
	b.bytes += size
	return nil
}

// begin begins the range of a stream.
func (b *builder) begin(rec *hot.Record, from uint64) error {
	meta := segment.Meta{
		Store: b.c.hot.ID(), Name: rec.Name, Incarnation: rec.ID, Life: rec.Life, Mode: rec.Mode,
		ContentType: rec.ContentType, CreatedMs: rec.CreatedAt, From: from,
	}
	if b.w == nil {
		b.w, b.first = b.c.opts.Encoder.NewWriter(meta), rec
	} else if err := b.w.Begin(meta); err != nil {
		return err
	}
	b.ids = append(b.ids, rec.ID)
	return nil
}

func (b *builder) abort() {
	if b.w != nil {
		b.w.Abort()
	}
}

func (b *builder) finish() (*Sealing, error) {
	if b.w == nil {
		return nil, nil
	}
	sealed, err := b.w.Finish()
	if err != nil {
		return nil, fmt.Errorf("build segment: %w", err)
	}
	key := b.key(sealed.Refs)
	sealed.Name(key)
	return &Sealing{c: b.c, ids: b.ids, key: key, sealed: sealed, content: b.bytes}, nil
}

func (b *builder) key(refs []segment.Ref) string {
	r := b.first
	if len(refs) > 1 {
		return b.c.opts.Cold.PackKey(r.Name.Bucket, r.Mode)
	}
	return b.c.opts.Cold.SegmentKey(r.Name, r.ID, r.Mode, refs[0].From, refs[0].To)
}
