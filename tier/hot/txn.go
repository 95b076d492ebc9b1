package hot

import (
	"encoding/binary"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

// txn is one batch in the making: commands are applied to it one after the other,
// each seeing what those before it did. A command checks everything before it
// writes anything, so a refused one leaves no trace, except that a stream whose
// lifetime is over may have given up its name.
type txn struct {
	limits limits
	table  *table
	batch  *pebble.Batch // indexed
	now    uint64        // of the command being applied
	state  state
	drafts map[stream.ID]*draft
	// order lists the drafts as they were made, so that a batch is the same
	// whatever order a map yields.
	order []stream.ID
	buf   []byte
}

// limits are the settings that decide outcomes.
type limits struct {
	sealTarget  uint64
	producers   uint64
	grace       uint64 // ms
	intentGrace uint64 // ms
	keepHistory uint64 // ms, never for ever
	fault       Fault
}

// draft is a record that this batch may change: base is the committed one (nil
// when it is new), rec the one to commit (nil when it is to be gone).
type draft struct {
	base, rec *Record
	mine      bool // rec is a copy of our own
}

// state is the store-wide part of the catalog.
type state struct {
	Life     uint64 // the last one given
	Streams  uint64 // visible ones
	Hot      uint64 // bytes with a hot copy
	Unsealed uint64 // bytes with no cold copy
	Fence    uint64 // of the last start that claimed cold storage
}

const stateVersion = 1

func (s state) encode() []byte {
	b := []byte{stateVersion}
	for _, v := range [...]uint64{s.Life, s.Streams, s.Hot, s.Unsealed, s.Fence} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func decodeState(b []byte) (state, error) {
	d := decoder{b: b}
	d.version(stateVersion)
	s := state{Life: d.uint(), Streams: d.uint(), Hot: d.uint(), Unsealed: d.uint(), Fence: d.uint()}
	if err := d.finish(); err != nil {
		return state{}, fmt.Errorf("decode store state: %w", err)
	}
	return s, nil
}

func (t *txn) set(key, value []byte) error { return t.batch.Set(key, value, nil) }
func (t *txn) delete(key []byte) error     { return t.batch.Delete(key, nil) }

// stream returns the record as this batch has it, nil when there is none.
func (t *txn) stream(id stream.ID) (*Record, error) {
	d, err := t.draft(id)
	if err != nil {
		return nil, err
	}
	return d.rec, nil
}

func (t *txn) draft(id stream.ID) (*draft, error) {
	if d := t.drafts[id]; d != nil {
		return d, nil
	}
	rec := t.table.cached(id)
	if rec == nil {
		r, err := loadRecord(t.batch, id)
		if err != nil && err != stream.ErrNotFound {
			return nil, err
		}
		rec = r
	}
	d := &draft{base: rec, rec: rec}
	t.drafts[id] = d
	t.order = append(t.order, id)
	return d, nil
}

// edit returns a record of this batch's own to be changed. The stream must exist.
func (t *txn) edit(id stream.ID) *Record {
	d := t.drafts[id]
	if !d.mine {
		d.rec = d.rec.clone()
		d.mine = true
	}
	return d.rec
}

// insert adds the record of a new incarnation.
func (t *txn) insert(rec *Record) {
	d := t.drafts[rec.ID]
	d.rec, d.mine = rec, true
}

// finish writes the records and what follows from them: indexes and counters.
func (t *txn) finish(was state) ([]change, error) {
	changes := make([]change, 0, len(t.order))
	for _, id := range t.order {
		d := t.drafts[id]
		if d.base == d.rec {
			continue
		}
		if err := t.write(id, d); err != nil {
			return nil, err
		}
		c := change{id: id, rec: d.rec, grown: d.grown()}
		if d.base != nil {
			c.name = d.base.Name
		}
		changes = append(changes, c)
	}
	if t.state != was {
		if err := t.set(keyState, t.state.encode()); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// grown reports whether the batch has added bytes to the stream.
func (d *draft) grown() bool {
	switch {
	case d.rec == nil:
		return false
	case d.base == nil:
		return d.rec.Tail > d.rec.Base
	}
	return d.rec.Tail > d.base.Tail
}

func (t *txn) write(id stream.ID, d *draft) error {
	t.count(d.base, -1)
	t.count(d.rec, +1)
	if d.rec != nil {
		u := d.rec.Unsealed()
		ended := d.rec.Closed || d.rec.Deleted
		d.rec.Ready = u >= t.limits.sealTarget || u > 0 && ended && !Small(u, t.limits.sealTarget)
	}
	if err := t.reindex(d); err != nil {
		return err
	}
	if d.rec == nil {
		return t.delete(keyStream(id))
	}
	t.buf = d.rec.encode(t.buf[:0])
	return t.set(keyStream(id), t.buf)
}

func (t *txn) count(r *Record, sign int64) {
	if r == nil {
		return
	}
	t.state.Hot += uint64(sign) * r.Hot()
	t.state.Unsealed += uint64(sign) * r.Unsealed()
	if !r.Deleted {
		t.state.Streams += uint64(sign)
	}
}

// indexes are the entries that a record has in the indexes by time and need.
type indexes struct {
	unsealed, expiry, ready bool
	since, deadline         uint64
}

func indexesOf(r *Record) indexes {
	if r == nil {
		return indexes{}
	}
	return indexes{
		unsealed: r.Unsealed() > 0,
		since:    r.UnsealedSince,
		expiry:   r.Deadline != 0 && !r.Deleted,
		deadline: r.Deadline,
		ready:    r.Ready,
	}
}

func (t *txn) reindex(d *draft) error {
	is, was := indexesOf(d.rec), indexesOf(d.base)
	if is == was {
		return nil
	}
	id := t.idOf(d)
	if is.unsealed != was.unsealed || is.since != was.since {
		if err := t.move(was.unsealed, keyUnsealed(was.since, id), is.unsealed, keyUnsealed(is.since, id)); err != nil {
			return err
		}
	}
	if is.expiry != was.expiry || is.deadline != was.deadline {
		if err := t.move(was.expiry, keyExpiry(was.deadline, id), is.expiry, keyExpiry(is.deadline, id)); err != nil {
			return err
		}
	}
	if is.ready != was.ready {
		return t.move(was.ready, keyReady(id), is.ready, keyReady(id))
	}
	return nil
}

func (t *txn) idOf(d *draft) stream.ID {
	if d.rec != nil {
		return d.rec.ID
	}
	return d.base.ID
}

// move takes the old index entry away, if there was one, and adds the new one.
func (t *txn) move(had bool, old []byte, has bool, key []byte) error {
	if had {
		if err := t.delete(old); err != nil {
			return err
		}
	}
	if has {
		return t.set(key, nil)
	}
	return nil
}
