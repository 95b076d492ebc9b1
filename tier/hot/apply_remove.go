package hot

import (
	"fmt"

	"firn/pkg/stream"
)

// remove deletes a stream (B§5.4). One that forks still need is hidden instead,
// and goes when the last of them does; so does its source in turn.
func (t *txn) remove(id stream.ID) error {
	rec, err := t.stream(id)
	switch {
	case err != nil:
		return err
	case rec == nil:
		return stream.ErrNotFound
	case rec.Deleted:
		return stream.ErrGone
	case rec.Forks > 0:
		return t.hide(rec)
	}
	if err := t.recount(rec, -1, -1); err != nil {
		return err
	}
	for {
		if err := t.erase(rec); err != nil {
			return err
		}
		if rec.Fork == nil {
			return nil
		}
		source, err := t.stream(rec.Fork.Source)
		if err != nil {
			return err
		}
		if source == nil {
			return fmt.Errorf("%w: source of fork %s has no record", ErrDamaged, rec.ID)
		}
		source = t.edit(source.ID)
		source.Forks--
		if source.Forks > 0 || !source.Deleted {
			return t.settle(source.ID)
		}
		if err := t.recount(source, 0, -1); err != nil {
			return err
		}
		rec = source
	}
}

func (t *txn) hide(rec *Record) error {
	if err := t.recount(rec, -1, 0); err != nil {
		return err
	}
	rec = t.edit(rec.ID)
	rec.Deleted = true
	if rec.Snapshot != nil {
		if err := t.drop(rec.Snapshot.Object, 1, t.limits.grace); err != nil {
			return err
		}
		rec.Snapshot = nil
	}
	return t.settle(rec.ID)
}

// erase takes an incarnation out of the catalog. Its segments stay named until
// they have been let go of, in steps, by Trim.
func (t *txn) erase(rec *Record) error {
	if rec.Fork != nil {
		if err := t.delete(keyFork(rec.Fork.Source, rec.wants(), rec.ID)); err != nil {
			return err
		}
	}
	if rec.Snapshot != nil {
		if err := t.drop(rec.Snapshot.Object, 1, t.limits.grace); err != nil {
			return err
		}
	}
	if rec.Segments > 0 {
		if err := t.set(keyTrim(rec.ID), nil); err != nil {
			return err
		}
	}
	if rec.Cut < rec.Tail {
		from := keyOf(kindData, rec.ID)
		if err := t.deleteRange(from, keyAfter(from), rec.Hot()); err != nil {
			return err
		}
	}
	if rec.Producers > 0 {
		from := keyOf(kindProducer, rec.ID)
		if err := t.batch.DeleteRange(from, keyAfter(from), nil); err != nil {
			return err
		}
	}
	t.drafts[rec.ID].rec = nil
	if t.limits.fault == FaultKeepName {
		return nil
	}
	return t.delete(keyName(rec.Name))
}

func (t *txn) expire(c Expire) error {
	rec, err := t.stream(c.ID)
	if err != nil || rec == nil || rec.Deleted || rec.Deadline == 0 {
		return err
	}
	// A write that came in meanwhile has renewed a sliding lifetime; reads renew
	// only what has not expired, so they need no look here.
	if l := rec.Lifetime; l.Sliding && rec.LastWrite+l.TTL*1000 > t.now || !l.Sliding && rec.Deadline > t.now {
		return nil
	}
	return t.remove(c.ID)
}

// touch takes the word of who proposes it for that the stream is alive: a reader may
// have held it beyond the persisted deadline.
func (t *txn) touch(c Touch) error {
	rec, err := t.stream(c.ID)
	switch {
	case err != nil:
		return err
	case rec == nil:
		return stream.ErrNotFound
	case rec.Deleted:
		return stream.ErrGone
	}
	t.renew(t.edit(rec.ID))
	return nil
}
