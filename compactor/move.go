package compactor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// move is a range of a stream that is to be written again, and the segments that hold
// it.
type move struct {
	id  stream.ID
	was []segment.Ref
	// hot: the segments are damaged, only the hot copy counts.
	hot bool
}

func (m move) from() uint64  { return m.was[0].From }
func (m move) to() uint64    { return m.was[len(m.was)-1].To }
func (m move) bytes() uint64 { return m.to() - m.from() }

// pieces are the segments as the catalog compares them.
func (m move) pieces() []hot.Piece {
	list := make([]hot.Piece, len(m.was))
	for i, r := range m.was {
		list[i] = hot.Piece{From: r.From, To: r.To, Object: r.Object}
	}
	return list
}

// BuildMerge puts the runs of small segments of streams, of one bucket and mode, into
// one object. It returns nil when none has one.
func (c *Compactor) BuildMerge(ctx context.Context, ids ...stream.ID) (*Sealing, error) {
	var moves []move
	v := c.hot.View()
	// One that is named twice would be in the object twice, and the catalog knows one place.
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		m, _, err := c.mergeOf(v, id)
		if err != nil && !errors.Is(err, stream.ErrNotFound) {
			v.Close()
			return nil, err
		}
		if m.was != nil {
			moves = append(moves, m)
		}
	}
	v.Close()
	s, _, err := c.buildMoves(ctx, moves)
	return s, err
}

// mergeOf is the run of small segments of a stream; without one, was is nil.
func (c *Compactor) mergeOf(v *hot.View, id stream.ID) (move, groupKey, error) {
	rec, err := v.Peek(id)
	if err != nil {
		return move{}, groupKey{}, err
	}
	run, err := c.hot.RunOf(v, rec)
	if err != nil || run.Empty() {
		return move{}, groupKey{}, err
	}
	refs, err := v.Segments(id, run.From, run.To, hot.MaxRun)
	return move{id: id, was: refs}, groupKey{rec.Name.Bucket, rec.Mode}, err
}

// BuildCopy puts what is still needed of an object into a new one. It returns nil when
// nothing is.
func (c *Compactor) BuildCopy(ctx context.Context, object string) (*Sealing, error) {
	moves, _, err := c.copyOf(ctx, object)
	if err != nil {
		return nil, err
	}
	s, _, err := c.buildMoves(ctx, moves)
	return s, err
}

// copyOf lists the ranges of an object that the catalog names, of streams that live. The
// object says which they may be.
func (c *Compactor) copyOf(ctx context.Context, object string) ([]move, groupKey, error) {
	d, err := c.store(object).Descriptor(ctx, object)
	if err != nil {
		return nil, groupKey{}, err
	}
	v := c.hot.View()
	defer v.Close()
	var moves []move
	for _, e := range d.Entries {
		rec, err := v.Peek(e.Incarnation)
		if errors.Is(err, stream.ErrNotFound) || err == nil && e.To <= rec.Floor {
			continue
		}
		if err != nil {
			return nil, groupKey{}, err
		}
		refs, err := v.Segments(e.Incarnation, e.From, e.From+1, 1)
		if err != nil {
			return nil, groupKey{}, err
		}
		if len(refs) == 1 && refs[0].Object == object && refs[0].From == e.From {
			moves = append(moves, move{id: e.Incarnation, was: refs})
		}
	}
	return moves, groupKey{d.Bucket, d.Mode}, nil
}

// buildMoves compresses ranges into one object, nil if no stream has one any more. Of
// an error it says which stream is at fault.
func (c *Compactor) buildMoves(ctx context.Context, moves []move) (*Sealing, stream.ID, error) {
	b := builder{c: c}
	var was [][]hot.Piece
	var content []byte
	for _, m := range moves {
		added, err := b.move(ctx, m, &content)
		if errors.Is(err, segment.ErrFull) {
			break
		}
		if err != nil {
			b.abort()
			return nil, m.id, err
		}
		if added {
			was = append(was, m.pieces())
		}
	}
	s, err := b.finish()
	if s != nil {
		s.was = was
	}
	return s, 0, err
}

// move adds a range: from its hot copy if there is one, else from its segments. It
// reports whether the stream is still there.
func (b *builder) move(ctx context.Context, m move, content *[]byte) (bool, error) {
	v := b.c.hot.View()
	rec, err := v.Peek(m.id)
	if err != nil {
		v.Close()
		if errors.Is(err, stream.ErrNotFound) {
			err = nil
		}
		return false, err
	}
	local := rec.Cut <= m.from()
	if m.hot && !local {
		v.Close()
		return false, nil // given up meanwhile
	}
	if err = b.begin(rec, m.from()); err == nil && local {
		err = v.Values(rec.ID, m.from(), m.to(), func(ms uint64, payload []byte) error { return b.w.Append(payload, ms) })
	}
	v.Close()
	if err == nil && !local {
		err = b.moveCold(ctx, m, content)
	}
	if err != nil {
		return false, fmt.Errorf("read bytes to write again: %w", err)
	}
	b.bytes += m.bytes()
	return true, nil
}

// moveCold reads a range from its segments. Streams are in the order in which packs
// have them: of the frames that they share, each is fetched once.
func (b *builder) moveCold(ctx context.Context, m move, content *[]byte) (err error) {
	for _, r := range m.was {
		if *content, err = b.c.store(r.Object).Read(ctx, (*content)[:0], r, r.From, r.To); err != nil {
			return err
		}
		span, err := r.Span(r.From, r.To)
		if err != nil {
			return err
		}
		for _, p := range span.Parts {
			if err := b.w.Append((*content)[p.From-r.From:p.To-r.From], p.TimeMs); err != nil {
				return err
			}
		}
	}
	return nil
}

// store is where an object is.
func (c *Compactor) store(object string) *cold.Store {
	if c.opts.Local != nil && cold.IsLocal(object) {
		return c.opts.Local
	}
	return c.opts.Cold
}

// commitReplacements swaps the segments, in steps of so many that are replaced.
func (s *Sealing) commitReplacements(ctx context.Context) error {
	for i := 0; i < len(s.ids); {
		var parts []hot.Part
		cmd := hot.Replace{Pack: s.pack()}
		for pieces := 0; i < len(s.ids); i++ {
			if pieces += len(s.was[i]); pieces > hot.PackStep && len(parts) > 0 {
				break
			}
			parts = append(parts, hot.Part{ID: s.ids[i], Ref: s.sealed.Refs[i]})
			cmd.Parts = append(cmd.Parts, hot.Replacement{ID: s.ids[i], Was: s.was[i], Ref: s.sealed.Refs[i]})
		}
		r, err := s.c.hot.Replace(ctx, cmd)
		if err := s.count(parts, r, err); err != nil {
			return err
		}
	}
	if s.named == 0 {
		return hot.ErrConflict
	}
	return nil
}
