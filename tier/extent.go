package tier

import (
	"context"
	"fmt"
	"slices"

	"firn/pkg/segment"
	"firn/pkg/stream"
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

// boundary returns [stream.ErrOffsetNotBoundary] unless a position that clients
// may read from is a message boundary of the stream.
func (s *Store) boundary(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64) error {
	if rec.Mode != stream.JSON || pos == 0 || pos == rec.Tail || pos == rec.Earliest || pos == rec.Base {
		return nil
	}
	list, err := extents(v, rec, pos-1)
	if err != nil {
		return err
	}
	e := list[0]
	var last []byte
	if !e.cold {
		last, err = v.Data(nil, e.owner.ID, pos-1, pos)
	} else {
		ref, err := v.Segment(e.owner.ID, pos-1)
		if err != nil {
			return err
		}
		// Frames and segments of a JSON stream end at messages.
		if at := ref.From - ref.Skip; ref.To == pos || ends(at, pos, ref.Frames) {
			return nil
		}
		last, err = s.cold(ref.Object).Read(ctx, nil, ref, pos-1, pos)
		if err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if last[0] != '\n' {
		return stream.ErrOffsetNotBoundary
	}
	return nil
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
