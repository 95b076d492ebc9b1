package hot

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Data appends to dst the stored bytes [from, to) of one incarnation's own hot
// range: cut ≤ from ≤ to ≤ tail. A hole is [ErrDamaged]: never fewer bytes, never
// others.
func (v *View) Data(dst []byte, id stream.ID, from, to uint64) ([]byte, error) {
	if from < to {
		dst = slices.Grow(dst, int(to-from)) // growing as values come copies them again
	}
	err := v.values(id, from, to, func(_ uint64, payload []byte) error {
		dst = append(dst, payload...)
		return nil
	})
	return dst, err
}

// Values calls fn for each value that holds bytes of [from, to), in order, with
// the append time in ms and the bytes that lie in the range. The bytes are valid
// during the call.
func (v *View) Values(id stream.ID, from, to uint64, fn func(ms uint64, payload []byte) error) error {
	return v.values(id, from, to, fn)
}

func (v *View) values(id stream.ID, from, to uint64, fn func(ms uint64, payload []byte) error) error {
	if from >= to {
		return nil
	}
	it, err := v.s.snap.NewIter(iterOptions(keyOf(kindData, id), keyData(id, to)))
	if err != nil {
		return fmt.Errorf("read %s at %d: %w", id, from, err)
	}
	return closeIter(it, walk(it, id, from, to, fn))
}

// seekValue moves an iterator over values of a stream to the one that holds a position,
// and reports whether there is one that may. Most often one begins there. Only
// otherwise it looks backwards, and not beyond where the longest could begin: Pebble
// skips what was evicted before it key by key, and reads the blocks of all of it.
func seekValue(it *pebble.Iterator, id stream.ID, pos uint64) bool {
	if it.SeekGE(keyData(id, pos)) && field(it.Key(), 9) == pos {
		return true
	}
	if it.Error() != nil {
		return false
	}
	it.SetBounds(keyData(id, pos-min(pos, MaxValue)), keyAfter(keyOf(kindData, id)))
	return it.SeekLT(keyData(id, pos))
}

// walk calls fn for the values that hold [from, to).
func walk(it *pebble.Iterator, id stream.ID, from, to uint64, fn func(ms uint64, payload []byte) error) error {
	pos := from
	for ok := seekValue(it, id, from); ok && pos < to; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		start := field(it.Key(), 9)
		if len(value) <= dataHeader || value[0] != dataVersion || start > pos {
			return fmt.Errorf("%w: %s has no data at %d", ErrDamaged, id, pos)
		}
		payload := value[dataHeader:]
		end := start + uint64(len(payload))
		if end <= pos {
			return fmt.Errorf("%w: %s has no data at %d", ErrDamaged, id, pos)
		}
		if err := fn(field(value, 1), payload[pos-start:min(end, to)-start]); err != nil {
			return err
		}
		pos = min(end, to)
	}
	if pos < to && it.Error() == nil {
		return fmt.Errorf("%w: %s has no data at %d", ErrDamaged, id, pos)
	}
	return it.Error()
}

// Segment returns the segment that holds a position of an incarnation's own cold
// range: floor ≤ pos < sealed. None is [ErrDamaged].
func (v *View) Segment(id stream.ID, pos uint64) (segment.Ref, error) {
	refs, err := v.Segments(id, pos, pos+1, 1)
	if err != nil {
		return segment.Ref{}, err
	}
	if len(refs) == 0 || refs[0].From > pos || refs[0].To <= pos {
		return segment.Ref{}, fmt.Errorf("%w: %s has no segment at %d", ErrDamaged, id, pos)
	}
	return refs[0], nil
}

// Segments returns at most limit segments that overlap [from, to), in order.
func (v *View) Segments(id stream.ID, from, to uint64, limit int) ([]segment.Ref, error) {
	return segmentsIn(v.s.snap, id, from, to, limit)
}
