package hot

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// publish makes a snapshot visible. The earliest offset moves in the same batch:
// there is no moment in which a client could be sent to bytes below it (X§2.2).
func (t *txn) publish(c Publish) error {
	rec, err := t.visible(c.ID)
	switch {
	case err != nil:
		return err
	case c.Snapshot.Position < rec.Earliest:
		return &stream.TrimmedError{Earliest: rec.Offset(rec.Earliest)}
	case c.Snapshot.Position > rec.Tail:
		return stream.ErrSnapshotPastTail
	}
	if err := t.claim(c.Snapshot.Object, object{live: 1, size: uint64(c.Snapshot.Size)}); err != nil {
		return err
	}
	rec = t.edit(c.ID)
	if old := rec.Snapshot; old != nil {
		if err := t.drop(old.Object, 1, t.limits.grace); err != nil {
			return err
		}
	}
	s := c.Snapshot
	rec.Snapshot = &s
	rec.Earliest = s.Position
	return t.settle(c.ID)
}

// seal names a segment and moves the sealed mark over it.
func (t *txn) seal(c Seal) error {
	if ok, err := t.sealable(c.ID, c.Ref); err != nil || !ok {
		return errOr(err, ErrConflict)
	}
	content := c.Ref.To - c.Ref.From
	if err := t.claim(c.Ref.Object, object{live: content, size: c.Size, content: content}); err != nil {
		return err
	}
	return t.extendSealed(c.ID, c.Ref)
}

// sealable reports whether a segment is the next one of a stream.
func (t *txn) sealable(id stream.ID, r segment.Ref) (bool, error) {
	rec, err := t.stream(id)
	next := rec != nil && (rec.Sealed == r.From || t.limits.fault == FaultSealAnywhere)
	return next && r.To <= rec.Tail && r.From < r.To, err
}

// extendSealed adds the next segment of a stream.
func (t *txn) extendSealed(id stream.ID, r segment.Ref) error {
	rec := t.edit(id)
	rec.Segments++
	if err := t.setSegment(id, r, true); err != nil {
		return err
	}
	if err := t.sealed(rec, r.To); err != nil {
		return err
	}
	return t.noteRun(rec)
}

// setSegment names a segment. One that is held has a hot copy, of its end at least.
func (t *txn) setSegment(id stream.ID, r segment.Ref, held bool) error {
	b, err := r.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("name segment of %s: %w", id, err)
	}
	if err := t.set(keySegment(id, r.From), b); err != nil || !held {
		return err
	}
	return t.set(heldKey(id, r), binary.BigEndian.AppendUint64(nil, r.To))
}

// heldKey is where a segment whose hot copy is kept stands in the order of age.
func heldKey(id stream.ID, r segment.Ref) []byte {
	return keyHeld(r.Frames[len(r.Frames)-1].TimeMs, id, r.From)
}

// sealed moves the sealed mark of a record of this batch's own.
func (t *txn) sealed(rec *Record, to uint64) error {
	rec.Sealed, rec.UnsealedSince = to, 0
	if to == rec.Tail {
		return nil
	}
	prefix := keyOf(kindData, rec.ID)
	it, err := t.batch.NewIter(iterOptions(prefix, keyAfter(prefix)))
	if err != nil {
		return err
	}
	if seekValue(it, rec.ID, to) && len(it.Value()) >= dataHeader {
		rec.UnsealedSince = field(it.Value(), 1)
	} else if it.Error() == nil {
		err = fmt.Errorf("%w: %s has no data at %d", ErrDamaged, rec.ID, to)
	}
	return closeIter(it, err)
}

// evict gives up hot bytes. The mark and the range go in one batch: a view shows
// both the old mark and the old bytes, or neither. It returns the new mark.
func (t *txn) evict(c Evict) (uint64, error) {
	rec, err := t.stream(c.ID)
	switch {
	case err != nil:
		return 0, err
	case rec == nil || c.To > rec.Sealed && t.limits.fault != FaultEvictUnsealed:
		return 0, ErrConflict
	case c.To <= rec.Cut:
		return rec.Cut, nil
	}
	rec = t.edit(c.ID)
	to, err := t.unhold(rec, c.To)
	if err != nil {
		return 0, err
	}
	return to, t.cut(rec, to)
}

// cut moves the cut mark of a record of this batch's own and deletes the hot
// values that lie wholly below it.
func (t *txn) cut(rec *Record, to uint64) error {
	from := rec.Cut
	rec.Cut = to
	prefix := keyOf(kindData, rec.ID)
	if to == rec.Tail {
		return t.deleteRange(prefix, keyAfter(prefix), to-from)
	}
	it, err := t.batch.NewIter(iterOptions(prefix, keyAfter(prefix)))
	if err != nil {
		return err
	}
	// The value that holds the cut stays: keys are the positions of first bytes.
	first := from
	if seekValue(it, rec.ID, from) {
		first = field(it.Key(), 9)
	}
	last := to
	if seekValue(it, rec.ID, to) {
		last = field(it.Key(), 9)
	}
	if err := closeIter(it, nil); err != nil || first >= last {
		return err
	}
	return t.deleteRange(keyData(rec.ID, first), keyData(rec.ID, last), last-first)
}

const (
	// fewBytes and fewKeys are what is deleted key by key.
	fewBytes = 64 << 10
	fewKeys  = 16
)

// deleteRange deletes data values that hold about size bytes. A few are deleted one by
// one: each range that is deleted costs every later iterator something until it is
// flushed, and there may be a hundred thousand small streams.
func (t *txn) deleteRange(from, to []byte, size uint64) error {
	if size > fewBytes {
		return t.batch.DeleteRange(from, to, nil)
	}
	it, err := t.batch.NewIter(iterOptions(from, to))
	if err != nil {
		return err
	}
	var keys [][]byte
	for ok := it.First(); ok && len(keys) <= fewKeys; ok = it.Next() {
		keys = append(keys, bytes.Clone(it.Key()))
	}
	if err := closeIter(it, nil); err != nil {
		return err
	}
	if len(keys) > fewKeys {
		return t.batch.DeleteRange(from, to, nil)
	}
	for _, k := range keys {
		if err := t.delete(k); err != nil {
			return err
		}
	}
	return nil
}

// evictStep bounds how many segments one command gives up: however many a stream
// has, the committer is not held for long.
const evictStep = 256

// unhold takes the segments that end at or below a new cut out of the eviction order.
// It returns how far it came.
func (t *txn) unhold(rec *Record, to uint64) (uint64, error) {
	refs, err := segmentsIn(t.batch, rec.ID, rec.Cut, to, evictStep)
	if err != nil {
		return 0, err
	}
	if len(refs) == evictStep {
		to = min(to, refs[evictStep-1].To)
	}
	for _, r := range refs {
		if r.To <= to {
			if err := t.delete(heldKey(rec.ID, r)); err != nil {
				return 0, err
			}
		}
	}
	return to, nil
}

// trim lets go of segments below the floor, oldest first.
func (t *txn) trim(c Trim) (TrimResult, error) {
	rec, err := t.stream(c.ID)
	if err != nil {
		return TrimResult{}, err
	}
	floor, grace := uint64(never), t.limits.grace
	if rec != nil {
		floor, grace = rec.Floor, max(t.limits.keepHistory, grace)
	}
	refs, err := segmentsFrom(t.batch, c.ID, c.From, floor, c.Limit)
	if err != nil {
		return TrimResult{}, err
	}
	done := TrimResult{Next: c.From}
	for _, r := range refs {
		if r.To > floor && t.limits.fault != FaultTrimAhead {
			break
		}
		if err := t.drop(r.Object, r.To-r.From, grace); err != nil {
			return TrimResult{}, err
		}
		if err := t.unname(c.ID, r); err != nil {
			return TrimResult{}, err
		}
		done.Segments++
		done.Next = r.To
	}
	if rec != nil && done.Segments > 0 {
		t.edit(c.ID).Segments -= uint64(done.Segments)
	}
	if done.Done = done.Segments < c.Limit; done.Done {
		return done, t.delete(keyTrim(c.ID))
	}
	return done, nil
}

// unname takes a segment out of the catalog and of the eviction order.
func (t *txn) unname(id stream.ID, r segment.Ref) error {
	if err := t.delete(keySegment(id, r.From)); err != nil {
		return err
	}
	return t.delete(heldKey(id, r))
}

// segmentsIn returns at most limit segments that overlap [from, to), in order.
func segmentsIn(r pebble.Reader, id stream.ID, from, to uint64, limit int) ([]segment.Ref, error) {
	if from >= to {
		return nil, nil
	}
	it, err := segmentIter(r, id)
	if err != nil {
		return nil, err
	}
	ok := it.SeekLT(keySegment(id, from+1))
	if !ok {
		ok = it.First()
	}
	return takeSegments(it, ok, id, from, to, limit)
}

// segmentsFrom returns at most limit segments that begin in [from, to), in order. It
// does not look at what is before.
func segmentsFrom(r pebble.Reader, id stream.ID, from, to uint64, limit int) ([]segment.Ref, error) {
	it, err := segmentIter(r, id)
	if err != nil {
		return nil, err
	}
	return takeSegments(it, it.SeekGE(keySegment(id, from)), id, from, to, limit)
}

func segmentIter(r pebble.Reader, id stream.ID) (*pebble.Iterator, error) {
	prefix := keyOf(kindSegment, id)
	return r.NewIter(iterOptions(prefix, keyAfter(prefix)))
}

// takeSegments reads on from where an iterator is, which it closes.
func takeSegments(it *pebble.Iterator, ok bool, id stream.ID, from, to uint64, limit int) ([]segment.Ref, error) {
	var refs []segment.Ref
	for ; ok && len(refs) < limit && field(it.Key(), 9) < to; ok = it.Next() {
		ref, err := segment.ParseRef(it.Value())
		if err != nil {
			return nil, closeIter(it, fmt.Errorf("%w: segment of %s: %w", ErrDamaged, id, err))
		}
		if ref.To > from {
			refs = append(refs, ref)
		}
	}
	return refs, closeIter(it, nil)
}

// closeIter ends an iterator and returns err, or else what the iterator suffered.
func closeIter(it *pebble.Iterator, err error) error {
	failed := it.Error()
	closed := it.Close()
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failed
	}
	return closed
}

func iterOptions(lower, upper []byte) *pebble.IterOptions {
	return &pebble.IterOptions{LowerBound: lower, UpperBound: upper}
}
