package hot

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

// keepTrim bounds how many segments one step lets go of.
const keepTrim = 256

// Keep drops the streams that are not wanted, after Reconcile. Those that a wanted one
// was forked from are hidden, as by a deletion. Subscriptions go too: streams that they
// are about may be gone.
func (r *Rebuild) Keep(wanted func(stream.Name) bool) error {
	snap := r.s.db.NewSnapshot()
	defer snap.Close()
	it, err := snap.NewIter(iterOptions([]byte{kindStream}, []byte{kindStream + 1}))
	if err != nil {
		return err
	}
	t := r.txn()
	for ok := it.First(); ok; ok = it.Next() {
		id := stream.ID(field(it.Key(), 1))
		rec, err := decodeRecord(id, it.Value())
		if err == nil && !rec.Deleted && !wanted(rec.Name) {
			err = t.discard(id)
		}
		if err == nil && (len(t.order) >= reconcileStreams || t.batch.Len() >= loadBytes) {
			err = r.commit(t)
			t = r.txn()
		}
		if err != nil {
			return closeIter(it, errors.Join(err, t.batch.Close()))
		}
	}
	if err := closeIter(it, nil); err != nil {
		return err
	}
	if err := r.commit(t); err != nil {
		return err
	}
	for _, kind := range []byte{kindSubscription, kindLink} {
		if err := r.s.db.DeleteRange([]byte{kind}, []byte{kind + 1}, pebble.NoSync); err != nil {
			return err
		}
	}
	return r.trimAll()
}

// discard removes a stream. Its values go one by one, see deleteStale, unless a fork may
// need them.
func (t *txn) discard(id stream.ID) error {
	rec, err := t.stream(id)
	if err != nil || rec == nil {
		return err
	}
	if rec.Forks == 0 && rec.Cut < rec.Tail {
		prefix := keyOf(kindData, id)
		if err := t.deleteStale(prefix, keyAfter(prefix)); err != nil {
			return err
		}
		rec = t.edit(id)
		rec.Cut, rec.Sealed, rec.UnsealedSince = rec.Tail, rec.Tail, 0
	}
	return t.remove(id)
}

// trimAll lets go of the segments that nothing needs.
func (r *Rebuild) trimAll() error {
	for {
		id, ok, err := r.firstTrim()
		if err != nil || !ok {
			return err
		}
		t := r.txn()
		if _, err := t.trim(Trim{ID: id, Limit: keepTrim}); err != nil {
			return errors.Join(err, t.batch.Close())
		}
		if err := r.commit(t); err != nil {
			return err
		}
	}
}

func (r *Rebuild) firstTrim() (stream.ID, bool, error) {
	it, err := r.s.db.NewIter(iterOptions([]byte{kindTrim}, []byte{kindTrim + 1}))
	if err != nil {
		return 0, false, err
	}
	ok := it.First()
	var id stream.ID
	if ok {
		id = stream.ID(field(it.Key(), 1))
	}
	return id, ok, closeIter(it, nil)
}
