package hot

import (
	"fmt"

	"firn/pkg/stream"
)

func (t *txn) create(c Create) (CreateResult, error) {
	b, err := t.bucket(c.Name.Bucket)
	if err != nil {
		return CreateResult{}, err
	}
	if b == nil {
		return CreateResult{}, stream.ErrBucketNotFound
	}
	old, err := t.named(c.Name)
	if err != nil {
		return CreateResult{}, err
	}
	if c.Found != 0 && (old == nil || old.ID != c.Found) {
		return CreateResult{}, ErrConflict
	}
	if old != nil {
		if old.Deleted {
			return CreateResult{}, stream.ErrNameBlocked
		}
		if !old.matches(c) {
			return CreateResult{}, stream.ErrExists
		}
		// Of now, too: commands of this batch may have changed old before, and change it
		// further.
		return CreateResult{Record: old.clone()}, nil
	}
	if taken, err := t.stream(c.ID); err != nil || taken != nil {
		return CreateResult{}, errOr(err, errIDTaken)
	}
	rec := &Record{
		ID: c.ID, Name: c.Name, ContentType: c.ContentType, Mode: c.Mode,
		CreatedAt: t.now, LastWrite: t.now,
		Lifetime: c.Lifetime, Asked: c.Lifetime, Closed: c.Closed,
	}
	if c.Fork != nil {
		if err := t.fork(rec, *c.Fork); err != nil {
			return CreateResult{}, err
		}
	} else {
		t.state.Life = max(t.state.Life+1, t.now)
		rec.Life = t.state.Life
	}
	t.insert(rec)
	if err := t.extend(rec, c.Payload); err != nil {
		return CreateResult{}, err
	}
	rec.Deadline = deadline(rec.Lifetime, t.now)
	if err := t.set(keyName(c.Name), keyStream(c.ID)[1:]); err != nil {
		return CreateResult{}, err
	}
	// Later commands of this batch may change rec further; the answer is of now.
	return CreateResult{Record: rec.clone(), Created: true}, t.recount(rec, +1, +1)
}

// named returns the record that has a name. One whose lifetime is over gives the
// name up first, unless its forks need it.
func (t *txn) named(n stream.Name) (*Record, error) {
	id, err := lookupName(t.batch, n)
	if err == stream.ErrNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec, err := t.stream(id)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, fmt.Errorf("%w: %s names incarnation %s, which has no record", ErrDamaged, n, id)
	}
	if !rec.Deleted && rec.Deadline != 0 && rec.Deadline <= t.now {
		if err := t.remove(id); err != nil {
			return nil, err
		}
		return t.stream(id)
	}
	return rec, nil
}

// matches reports whether a repeated request asks for the stream that is there
// (B§5.1, B§4.2). What was asked for is compared, not what was inherited; a fork
// request without an offset matches whatever the offset was.
func (r *Record) matches(c Create) bool {
	if r.Closed != c.Closed || !r.Asked.Equal(c.Lifetime) || (r.Fork == nil) != (c.Fork == nil) {
		return false
	}
	if !stream.SameType(r.ContentType, c.ContentType) {
		return false
	}
	if f := c.Fork; f != nil {
		return r.Fork.From == f.From && r.Fork.SubOffset == f.SubOffset &&
			(!f.Anchored || r.Fork.Anchor == f.Anchor)
	}
	return true
}

// fork makes rec a fork: it shares the source's bytes below its base, its life,
// its earliest offset, its snapshot and, unless it has its own, its lifetime.
func (t *txn) fork(rec *Record, f CreateFork) error {
	src, err := t.visible(f.Source)
	switch {
	case err == stream.ErrNotFound:
		return stream.ErrForkSourceNotFound
	case err == stream.ErrGone:
		return stream.ErrForkSourceGone
	case err != nil:
		return err
	case f.Position < src.Earliest:
		return &stream.TrimmedError{Earliest: src.Offset(src.Earliest)}
	case f.Position > src.Tail:
		return stream.ErrOffsetPastTail
	}
	rec.Life, rec.Former = src.Life, src.Lives().Clip(f.Position).Former
	rec.Fork = &Fork{Source: src.ID, From: f.From, Anchor: f.Anchor, SubOffset: f.SubOffset}
	p := f.Position
	rec.Marks = Marks{Base: p, Floor: p, Cut: p, Sealed: p, Tail: p}
	rec.Earliest, rec.Need = src.Earliest, src.Earliest
	if rec.Lifetime == (stream.Lifetime{}) {
		rec.Lifetime = src.Lifetime
	}
	if s := src.Snapshot; s != nil && s.Position <= p {
		rec.Snapshot = s
		if err := t.share(s.Object); err != nil {
			return err
		}
	}
	t.edit(src.ID).Forks++
	return t.set(keyFork(src.ID, rec.wants(), rec.ID), nil)
}

// wants is the lowest position of its source that a fork, or a fork of it, may read.
func (r *Record) wants() uint64 {
	if r.Need < r.Base {
		return r.Need
	}
	return never
}

// settle recomputes from which position on a stream's bytes are needed, lets the
// floor follow, and goes on to the source if that changes what is wanted of it.
func (t *txn) settle(id stream.ID) error {
	for {
		rec, err := t.stream(id)
		if err != nil {
			return err
		}
		need, err := t.need(rec)
		if err != nil || need == rec.Need {
			return err
		}
		rec = t.edit(id)
		before := rec.wants()
		rec.Need = need
		if err := t.raise(rec, min(need, rec.Tail)); err != nil {
			return err
		}
		if rec.Fork == nil || rec.wants() == before {
			return nil
		}
		source := rec.Fork.Source
		if err := t.move(true, keyFork(source, before, id), true, keyFork(source, rec.wants(), id)); err != nil {
			return err
		}
		id = source
	}
}

// need is the lowest position that the stream's own readers, or its forks, may
// read; never if it is hidden and no fork wants anything.
func (t *txn) need(rec *Record) (uint64, error) {
	need := uint64(never)
	if !rec.Deleted {
		need = rec.Earliest
	}
	if rec.Forks == 0 || t.limits.fault == FaultForgetForks {
		return need, nil
	}
	prefix := keyOf(kindFork, rec.ID)
	it, err := t.batch.NewIter(iterOptions(prefix, keyAfter(prefix)))
	if err != nil {
		return 0, err
	}
	if it.First() {
		need = min(need, field(it.Key(), 9))
	}
	return need, it.Close()
}

// raise moves the floor up; cut and sealed jump to it when it overtakes them. The
// segments below it, and their places in the eviction order, are let go of by Trim, in
// steps: there may be millions.
func (t *txn) raise(rec *Record, floor uint64) error {
	if floor <= rec.Floor {
		return nil
	}
	rec.Floor = floor
	if rec.Segments > 0 {
		if err := t.set(keyTrim(rec.ID), nil); err != nil {
			return err
		}
	}
	if rec.Cut < floor {
		if err := t.cut(rec, floor); err != nil {
			return err
		}
	}
	if rec.Sealed < floor {
		return t.sealed(rec, floor)
	}
	return nil
}

func errOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
