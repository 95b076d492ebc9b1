package hot

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Found is a range of an object that the copy does not name: it was sealed after the
// copy was made, or was never named. The object says all this of itself.
type Found struct {
	Name        stream.Name
	ID          stream.ID
	Life        uint64
	ContentType string
	Mode        stream.Mode
	CreatedMs   uint64
	Ref         segment.Ref
	// Size is that of the object, Content that of all its ranges, in bytes.
	Size, Content uint64
	// Named: the copy names other ranges of the object, and may have let go of this
	// one. It is not missed if it cannot be attached.
	Named bool
}

// Rebuilt is what a stream is after a rebuild.
type Rebuilt struct {
	Name stream.Name
	ID   stream.ID
	// CopyTail is the tail in the copy, Tail that of now: bytes between them were
	// found sealed. What was appended behind Tail is lost, if anything was.
	CopyTail, Tail uint64
	// Life is the new one, FormerLife the one before.
	Life, FormerLife uint64
	Closed           bool
	// Deleted: it is kept for its forks alone.
	Deleted bool
	// Unknown: the copy does not know the stream. Its lifetime, whether it was closed
	// and its producers are lost.
	Unknown bool
}

// ReconcileOptions say what was found beside a copy and who is told of the outcome.
type ReconcileOptions struct {
	Found []Found
	// Life is the highest life that anybody may have seen.
	Life uint64
	// Stream is told of every stream, Lost of every range that was found and cannot
	// be attached to anything.
	Stream func(Rebuilt) error
	Lost   func(f Found, reason string) error
}

const (
	// reconcileStreams bounds how many streams one batch changes.
	reconcileStreams = 512
	// generationLeap is how far the generations of subscriptions are moved on: no wake
	// of the time after the copy has a generation that is given again.
	generationLeap = 1 << 20
)

// Reconcile makes a store of what was loaded: hot copies that are not there are given
// up, segments that were found are attached, every stream begins a new life, and
// indexes and counters follow.
func (r *Rebuild) Reconcile(o ReconcileOptions) error {
	st := *r.s.state.Load()
	st.Life = max(st.Life, o.Life)
	found := make(map[stream.ID][]Found)
	for _, f := range o.Found {
		found[f.ID] = append(found[f.ID], f)
		st.Life = max(st.Life, f.Life) // given after the copy
	}
	r.s.state.Store(&st)
	// No segment has a hot copy any more.
	if err := r.s.db.DeleteRange([]byte{kindHeld}, []byte{kindHeld + 1}, pebble.NoSync); err != nil {
		return err
	}
	if err := r.dropOrphans(); err != nil {
		return err
	}
	told := o.Lost
	o.Lost = func(f Found, reason string) error {
		if f.Named {
			return nil
		}
		return told(f, reason)
	}
	c := &reconciliation{r: r, o: o, found: found, known: make(map[stream.ID]bool)}
	// A fork takes the life of its source.
	for _, forks := range []bool{false, true} {
		if err := c.streams(forks); err != nil {
			return err
		}
	}
	if err := c.unknown(); err != nil {
		return err
	}
	if err := r.moveLinks(); err != nil {
		return err
	}
	return r.moveSubscriptions()
}

// dropOrphans deletes the bytes of streams that went away after they were copied.
func (r *Rebuild) dropOrphans() error {
	it, err := r.s.db.NewIter(iterOptions([]byte{kindData}, []byte{kindData + 1}))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; {
		id := stream.ID(field(it.Key(), 1))
		end := keyAfter(keyOf(kindData, id))
		_, err := loadRecord(r.s.db, id)
		if err == stream.ErrNotFound {
			err = r.s.db.DeleteRange(keyOf(kindData, id), end, pebble.NoSync)
		}
		if err != nil {
			return closeIter(it, err)
		}
		ok = it.SeekGE(end)
	}
	return closeIter(it, nil)
}

// reconciliation is a Reconcile under way.
type reconciliation struct {
	r     *Rebuild
	o     ReconcileOptions
	found map[stream.ID][]Found
	// known are the incarnations of found that the copy knows.
	known map[stream.ID]bool
}

// streams reconciles all that are forks, or all that are none.
func (c *reconciliation) streams(forks bool) error {
	snap := c.r.s.db.NewSnapshot()
	defer snap.Close()
	it, err := snap.NewIter(iterOptions([]byte{kindStream}, []byte{kindStream + 1}))
	if err != nil {
		return err
	}
	t := c.r.txn()
	for ok := it.First(); ok; ok = it.Next() {
		id := stream.ID(field(it.Key(), 1))
		rec, err := decodeRecord(id, it.Value())
		if err == nil && (rec.Fork != nil) == forks {
			err = c.stream(t, id)
		}
		if err == nil && (len(t.order) >= reconcileStreams || t.batch.Len() >= loadBytes) {
			err = c.r.commit(t)
			t = c.r.txn()
		}
		if err != nil {
			return closeIter(it, errors.Join(err, t.batch.Close()))
		}
	}
	if err := closeIter(it, nil); err != nil {
		return err
	}
	return c.r.commit(t)
}

// stream reconciles one stream.
func (c *reconciliation) stream(t *txn, id stream.ID) error {
	if _, err := t.stream(id); err != nil {
		return err
	}
	rec := t.edit(id)
	done := Rebuilt{
		Name: rec.Name, ID: id, CopyTail: rec.Tail, FormerLife: rec.Life, Closed: rec.Closed, Deleted: rec.Deleted,
	}
	c.known[id] = true
	if err := c.attach(t, rec, c.found[id]); err != nil {
		return err
	}
	if err := settleHot(t, rec); err != nil {
		return err
	}
	life, err := newLife(t, rec)
	if err != nil {
		return err
	}
	rec.setLives(rec.Lives().Renew(life, rec.Tail))
	done.Tail, done.Life = rec.Tail, rec.Life
	return c.o.Stream(done)
}

// attach takes in found segments that continue what the copy has sealed.
func (c *reconciliation) attach(t *txn, rec *Record, found []Found) error {
	rest := found
	for {
		var next *Found
		for i, f := range rest {
			fits := f.Life == rec.Life && f.Name == rec.Name && f.Mode == rec.Mode && f.Ref.From == rec.Sealed &&
				(f.Ref.To <= rec.Tail || !rec.Closed && !rec.Deleted)
			if fits && (next == nil || f.Ref.To > next.Ref.To) {
				next = &rest[i]
			}
		}
		if next == nil {
			break
		}
		if err := attachSegment(t, rec, *next); err != nil {
			return err
		}
	}
	for _, f := range rest {
		switch {
		case f.Life == rec.Life && f.Ref.To <= rec.Sealed:
			continue // attached, or another object with bytes that are there
		case slices.ContainsFunc(rec.Former, func(l stream.Former) bool { return l.Life == f.Life }):
			continue // lost in an earlier rebuild, which has told
		}
		if err := c.o.Lost(f, "does not continue what is known of its stream"); err != nil {
			return err
		}
	}
	return nil
}

// attachSegment names the next segment of a stream.
func attachSegment(t *txn, rec *Record, f Found) error {
	b, err := f.Ref.AppendBinary(nil)
	if err != nil {
		return fmt.Errorf("attach segment of %s: %w", rec.ID, err)
	}
	if err := t.set(keySegment(rec.ID, f.Ref.From), b); err != nil {
		return err
	}
	if err := attachObject(t, f); err != nil {
		return err
	}
	rec.Segments++
	rec.Sealed, rec.Tail = f.Ref.To, max(rec.Tail, f.Ref.To)
	if ms := f.Ref.Frames[len(f.Ref.Frames)-1].TimeMs; ms > rec.LastWrite {
		rec.LastWrite = ms
		if rec.Lifetime.Sliding {
			rec.Deadline = max(rec.Deadline, deadline(rec.Lifetime, ms))
		}
	}
	return nil
}

// attachObject counts a range that is named now.
func attachObject(t *txn, f Found) error {
	o, err := t.object(f.Ref.Object)
	if err != nil {
		return err
	}
	if o == nil {
		o = &object{}
	}
	is := object{state: Live, live: o.live + f.Ref.To - f.Ref.From, size: f.Size, content: f.Content, keep: o.keep}
	return t.replace(f.Ref.Object, *o, is)
}

// settleHot gives up the hot copies of what is sealed, none of which was copied, and
// holds the rest to be complete.
func settleHot(t *txn, rec *Record) error {
	prefix := keyOf(kindData, rec.ID)
	end := keyAfter(prefix)
	if rec.Sealed < rec.Tail {
		it, err := t.batch.NewIter(iterOptions(prefix, end))
		if err != nil {
			return err
		}
		end = keyData(rec.ID, rec.Sealed)
		// The value that holds the mark stays.
		if seekValue(it, rec.ID, rec.Sealed) {
			end = keyData(rec.ID, field(it.Key(), 9))
		}
		err = walk(it, rec.ID, rec.Sealed, rec.Tail, func(uint64, []byte) error { return nil })
		if err := closeIter(it, err); err != nil {
			return fmt.Errorf("%s: %w", rec.Name, err)
		}
	}
	if err := t.deleteStale(prefix, end); err != nil {
		return err
	}
	rec.Cut = rec.Sealed
	if err := t.sealed(rec, rec.Sealed); err != nil {
		return err
	}
	return t.noteRun(rec)
}

// deleteStale deletes the values that were copied and have been sealed since. Most
// streams have none, and a range that is deleted for each of a million would make every
// iterator slower than the one before.
func (t *txn) deleteStale(from, to []byte) error {
	it, err := t.batch.NewIter(iterOptions(from, to))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		if err := t.delete(it.Key()); err != nil {
			return closeIter(it, err)
		}
	}
	return closeIter(it, nil)
}

// newLife is the next life that nothing had, or for a fork that of its source.
func newLife(t *txn, rec *Record) (uint64, error) {
	root := rec
	for root.Fork != nil {
		src, err := t.stream(root.Fork.Source)
		if err != nil {
			return 0, err
		}
		if src == nil {
			return 0, fmt.Errorf("%w: source of fork %s has no record", ErrDamaged, root.ID)
		}
		root = src
	}
	if root != rec {
		return root.Life, nil
	}
	t.state.Life = max(t.state.Life+1, t.now)
	return t.state.Life, nil
}

func (r *Record) setLives(l stream.Lives) { r.Life, r.Former = l.Life, l.Former }

// unknown makes streams of found segments whose incarnations the copy does not know:
// they were made after it. One whose first bytes are not there is lost.
func (c *reconciliation) unknown() error {
	ids := make([]stream.ID, 0, len(c.found))
	for id := range c.found {
		if !c.known[id] {
			ids = append(ids, id)
		}
	}
	// Of several streams of one name the last one made has it.
	slices.SortFunc(ids, func(a, b stream.ID) int {
		return cmp.Or(cmp.Compare(c.found[b][0].Life, c.found[a][0].Life), cmp.Compare(a, b))
	})
	for _, id := range ids {
		t := c.r.txn()
		if err := c.adopt(t, id, c.found[id]); err != nil {
			return errors.Join(err, t.batch.Close())
		}
		if err := c.r.commit(t); err != nil {
			return err
		}
	}
	return nil
}

// adopt makes one stream, or reports its segments as lost.
func (c *reconciliation) adopt(t *txn, id stream.ID, found []Found) error {
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Ref.From, b.Ref.From), cmp.Compare(b.Ref.To, a.Ref.To))
	})
	lost := func(reason string) error {
		for _, f := range found {
			if err := c.o.Lost(f, reason); err != nil {
				return err
			}
		}
		return nil
	}
	first := found[0]
	// Lives are given in order, so the copy would know a stream of an earlier one.
	if first.Life <= c.r.was.Life {
		return lost("belongs to a stream that was deleted before the copy, or to a fork made after it")
	}
	if first.Ref.From != 0 {
		return lost("belongs to a stream whose beginning is not known: a fork, or one with a snapshot")
	}
	if reason, err := c.freeName(t, first); err != nil || reason != "" {
		return errors.Join(err, lost(reason))
	}
	if b, err := t.bucket(first.Name.Bucket); err != nil {
		return err
	} else if b == nil {
		if err := t.set(keyBucket(first.Name.Bucket), bucket{created: first.CreatedMs}.encode()); err != nil {
			return err
		}
	}
	if _, err := t.stream(id); err != nil {
		return err
	}
	rec := &Record{
		ID: id, Name: first.Name, Life: first.Life, ContentType: first.ContentType, Mode: first.Mode,
		CreatedAt: first.CreatedMs, LastWrite: first.CreatedMs,
	}
	t.insert(rec)
	if err := c.attach(t, rec, found); err != nil {
		return err
	}
	if err := settleHot(t, rec); err != nil {
		return err
	}
	life, err := newLife(t, rec)
	if err != nil {
		return err
	}
	rec.setLives(rec.Lives().Renew(life, rec.Tail))
	if err := t.set(keyName(rec.Name), keyStream(id)[1:]); err != nil {
		return err
	}
	if err := t.recount(rec, +1, +1); err != nil {
		return err
	}
	return c.o.Stream(Rebuilt{
		Name: rec.Name, ID: id, Tail: rec.Tail, Life: rec.Life, FormerLife: first.Life, Unknown: true,
	})
}

// freeName lets a stream have its name: one that is older must have been deleted. It
// returns why that cannot be.
func (c *reconciliation) freeName(t *txn, f Found) (reason string, err error) {
	id, err := lookupName(t.batch, f.Name)
	if err == stream.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	old, err := t.stream(id)
	switch {
	case err != nil:
		return "", err
	case old == nil:
		return "", fmt.Errorf("%w: %s names incarnation %s, which has no record", ErrDamaged, f.Name, id)
	case old.Former[len(old.Former)-1].Life > f.Life:
		return "belongs to an earlier stream of its name, which was deleted", nil
	case old.Forks > 0 || old.Deleted:
		return "belongs to a stream whose name is held by a deleted one that has forks", nil
	}
	return "", t.remove(id)
}

// moveLinks gives the cursors of subscriptions the new lives of their streams.
func (r *Rebuild) moveLinks() error {
	return r.rewrite(kindLink, func(b *pebble.Batch, key, value []byte) error {
		l, err := decodeLink(stream.Name{}, value)
		if err != nil || l.Stream == 0 {
			return err
		}
		rec, err := loadRecord(r.s.db, l.Stream)
		if err == stream.ErrNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		l.Life, l.Position = rec.Life, min(l.Position, rec.Tail)
		return b.Set(key, l.encode(), nil)
	})
}

// moveSubscriptions ends the wakes that were in flight, and goes on with generations
// that were never given: those of after the copy are not known.
func (r *Rebuild) moveSubscriptions() error {
	return r.rewrite(kindSubscription, func(b *pebble.Batch, key, value []byte) error {
		s, err := decodeSubscription("", "", value)
		if err != nil {
			return err
		}
		s.end()
		s.Generation += generationLeap
		s.Revision++
		return b.Set(key, s.encode(), nil)
	})
}

// rewrite calls fn for each key of a kind, with batches of bounded size.
func (r *Rebuild) rewrite(kind byte, fn func(b *pebble.Batch, key, value []byte) error) error {
	snap := r.s.db.NewSnapshot()
	defer snap.Close()
	it, err := snap.NewIter(iterOptions([]byte{kind}, []byte{kind + 1}))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		err := fn(r.batch, it.Key(), it.Value())
		if err == nil && r.batch.Len() >= loadBytes {
			err = r.flush()
		}
		if err != nil {
			return closeIter(it, err)
		}
	}
	return errors.Join(closeIter(it, nil), r.flush())
}
