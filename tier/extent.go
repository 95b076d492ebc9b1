package tier

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

// extent is a range of positions that are one incarnation's own bytes, all in one
// tier.
type extent struct {
	owner    *hot.Record
	from, to uint64
	cold     bool
}

// extents returns the stream's bytes from a position to its tail, in order: the
// inherited ones lie in the sources of a fork. The walk goes down the chain of
// forks once, whatever its length.
func extents(v *hot.View, rec *hot.Record, from uint64) ([]extent, error) {
	var list []extent
	to := rec.Tail
	for {
		if start := max(from, rec.Base); start < to {
			// Built from the end: the hot part comes before the cold one.
			if mid := max(start, rec.Cut); mid < to {
				list = append(list, extent{owner: rec, from: mid, to: to})
			}
			if mid := min(to, rec.Cut); start < mid {
				list = append(list, extent{owner: rec, from: start, to: mid, cold: true})
			}
		}
		if from >= rec.Base {
			slices.Reverse(list)
			return list, nil
		}
		to = min(to, rec.Base)
		source, err := v.Incarnation(rec.Fork.Source)
		if err != nil {
			return nil, fmt.Errorf("%w: source of fork %s: %w", hot.ErrDamaged, rec.ID, err)
		}
		rec = source
	}
}

// certain reports whether a position that clients may read from is a message
// boundary without a look at the byte before it.
func certain(rec *hot.Record, pos uint64) bool {
	return rec.Mode != stream.JSON || pos == 0 || pos == rec.Tail || pos == rec.Earliest || pos == rec.Base
}

// boundary returns [stream.ErrOffsetNotBoundary] unless a position that clients may
// read from is a message boundary of the stream. A cold byte is fetched without a
// view; if its object is gone, the catalog is looked at once more.
func (s *Store) boundary(ctx context.Context, id stream.ID, pos uint64) error {
	last, ref, err := s.before(id, pos)
	if err == nil && last == nil && ref != nil {
		last, err = s.cold(ref.Object).Read(ctx, nil, *ref, pos-1, pos)
		if errors.Is(err, cold.ErrMissing) {
			if last, ref, err = s.before(id, pos); err == nil && last == nil && ref != nil {
				last, err = s.cold(ref.Object).Read(ctx, nil, *ref, pos-1, pos)
			}
		}
	}
	if err == nil && last != nil && last[0] != '\n' {
		err = stream.ErrOffsetNotBoundary
	}
	return err
}

// before returns the byte before a position, if it is hot, or the segment that has
// it; neither, if the position is certain or the edge of a frame or segment.
func (s *Store) before(id stream.ID, pos uint64) ([]byte, *segment.Ref, error) {
	v := s.hot.View()
	defer v.Close()
	rec, err := s.again(v, id, pos)
	if err != nil || certain(rec, pos) {
		return nil, nil, err
	}
	list, err := extents(v, rec, pos-1)
	if err != nil {
		return nil, nil, err
	}
	e := list[0]
	if !e.cold {
		last, err := v.Data(nil, e.owner.ID, pos-1, pos)
		return last, nil, err
	}
	ref, err := v.Segment(e.owner.ID, pos-1)
	if err != nil {
		return nil, nil, err
	}
	// Frames and segments of a JSON stream end at messages.
	if ref.To == pos || ends(ref.From-ref.Skip, pos, ref.Frames) {
		return nil, nil, nil
	}
	return nil, &ref, nil
}

// ends reports whether a frame ends at pos, when the first one begins at at.
func ends(at, pos uint64, frames []segment.Frame) bool {
	for _, f := range frames {
		if at >= pos {
			break
		}
		at += uint64(f.Content)
	}
	return at == pos
}
