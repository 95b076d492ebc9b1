package hot

import (
	"container/list"
	"errors"
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

// table holds what is published: the current view, a bounded cache of records as
// of that view, and the waiters at streams' tails.
type table struct {
	db *pebble.DB

	mu      sync.Mutex
	current *snapshot
	limit   int
	byName  map[stream.Name]*entry
	byID    map[stream.ID]*entry
	recent  *list.List // of *entry, most recently used first
	gates   map[stream.ID]*gate

	open sync.WaitGroup // snapshots that are not closed yet
}

// snapshot is a Pebble snapshot with a count of its users. The count is guarded
// by table.mu.
type snapshot struct {
	snap *pebble.Snapshot
	seq  uint64 // publications before it
	refs int
}

// entry is a cached record: the published one since publication number since.
type entry struct {
	rec   *Record
	since uint64
	at    *list.Element
}

// gate is what the waiters of one stream wait at: ch closes at the next change.
type gate struct {
	ch      chan struct{}
	waiters int
}

func newTable(db *pebble.DB, limit int) *table {
	t := &table{
		db:     db,
		limit:  limit,
		byName: make(map[stream.Name]*entry),
		byID:   make(map[stream.ID]*entry),
		recent: list.New(),
		gates:  make(map[stream.ID]*gate),
	}
	t.current = t.snapshot()
	return t
}

func (t *table) snapshot() *snapshot {
	t.open.Add(1)
	return &snapshot{snap: t.db.NewSnapshot(), refs: 1}
}

// change is what a batch did to one stream; rec is nil when it is gone.
type change struct {
	id   stream.ID
	name stream.Name
	rec  *Record
	// grown: the batch has added bytes.
	grown bool
}

// publish shows the committed batch to readers and wakes the waiters of the
// streams it changed. Only the committer calls it, between two batches.
func (t *table) publish(changes []change) {
	next := t.snapshot()
	t.mu.Lock()
	next.seq = t.current.seq + 1
	old := t.current
	t.current = next
	for _, c := range changes {
		if c.rec == nil {
			t.forget(c.id)
		}
	}
	for _, c := range changes {
		if c.rec != nil {
			t.remember(c.rec, next.seq)
		}
		if g := t.gates[c.id]; g != nil {
			close(g.ch)
			delete(t.gates, c.id)
		}
	}
	t.release(old)
	t.mu.Unlock()
}

// close gives up the current view and waits until all others are closed.
func (t *table) close() {
	t.mu.Lock()
	t.release(t.current)
	t.mu.Unlock()
	t.open.Wait()
}

// release closes a snapshot that nobody uses any more, elsewhere: Pebble looks for
// compactions then, and that waits for a sync of its manifest. Neither the committer
// nor a reader, nor anybody who wants mu, should.
func (t *table) release(s *snapshot) {
	if s.refs--; s.refs == 0 {
		go func() {
			s.snap.Close()
			t.open.Done()
		}()
	}
}

func (t *table) remember(rec *Record, seq uint64) {
	if e := t.byID[rec.ID]; e != nil {
		e.rec, e.since = rec, seq
		t.recent.MoveToFront(e.at)
		return
	}
	e := &entry{rec: rec, since: seq}
	e.at = t.recent.PushFront(e)
	t.byID[rec.ID] = e
	t.byName[rec.Name] = e
	if t.recent.Len() > t.limit {
		t.forget(t.recent.Back().Value.(*entry).rec.ID)
	}
}

func (t *table) forget(id stream.ID) {
	e := t.byID[id]
	if e == nil {
		return
	}
	t.recent.Remove(e.at)
	delete(t.byID, id)
	if t.byName[e.rec.Name] == e {
		delete(t.byName, e.rec.Name)
	}
}

// cached returns the committer's view of a record: the published one, or nil.
func (t *table) cached(id stream.ID) *Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.byID[id]; e != nil {
		return e.rec
	}
	return nil
}

// View is one consistent, durable state of the whole store. It must be closed, and
// soon: it keeps Pebble from reclaiming space. It is safe for concurrent use.
type View struct {
	t *table
	s *snapshot
}

func (t *table) view() *View {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current.refs++
	return &View{t: t, s: t.current}
}

// Close gives the view back.
func (v *View) Close() {
	v.t.mu.Lock()
	v.t.release(v.s)
	v.t.mu.Unlock()
}

// Reader is the view as Pebble has it, for who checks it from the outside.
func (v *View) Reader() pebble.Reader { return v.s.snap }

// Stream returns the record of a name. Errors: [stream.ErrNotFound]. A deleted
// stream that forks still need is returned as it is; see [Record.Deleted].
func (v *View) Stream(n stream.Name) (*Record, error) {
	v.t.mu.Lock()
	if e := v.t.byName[n]; e != nil && e.since <= v.s.seq {
		v.t.recent.MoveToFront(e.at)
		rec := e.rec
		v.t.mu.Unlock()
		return rec, nil
	}
	v.t.mu.Unlock()
	id, err := lookupName(v.s.snap, n)
	if err != nil {
		return nil, err
	}
	return v.Incarnation(id)
}

// Incarnation returns the record of an incarnation. Errors: [stream.ErrNotFound].
func (v *View) Incarnation(id stream.ID) (*Record, error) {
	v.t.mu.Lock()
	if e := v.t.byID[id]; e != nil && e.since <= v.s.seq {
		v.t.recent.MoveToFront(e.at)
		rec := e.rec
		v.t.mu.Unlock()
		return rec, nil
	}
	v.t.mu.Unlock()
	rec, err := loadRecord(v.s.snap, id)
	if err != nil {
		return nil, err
	}
	v.t.mu.Lock()
	// A record may be cached only while its view is the current one: a later
	// publication might have changed it.
	if v.s == v.t.current && v.t.byID[id] == nil {
		v.t.remember(rec, v.s.seq)
	}
	v.t.mu.Unlock()
	return rec, nil
}

// lookupName reads the incarnation of a name. Errors: [stream.ErrNotFound].
func lookupName(r pebble.Reader, n stream.Name) (stream.ID, error) {
	v, err := get(r, keyName(n))
	if err != nil {
		return 0, fmt.Errorf("look up %s: %w", n, err)
	}
	if v == nil {
		return 0, stream.ErrNotFound
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("look up %s: %w", n, errRecord)
	}
	return stream.ID(field(v, 0)), nil
}

// loadRecord reads the record of an incarnation. Errors: [stream.ErrNotFound].
func loadRecord(r pebble.Reader, id stream.ID) (*Record, error) {
	v, err := get(r, keyStream(id))
	if err != nil {
		return nil, fmt.Errorf("load stream %s: %w", id, err)
	}
	if v == nil {
		return nil, stream.ErrNotFound
	}
	return decodeRecord(id, v)
}

// get returns a copy of a value, nil when the key is absent.
func get(r pebble.Reader, key []byte) ([]byte, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := append([]byte{}, v...)
	return c, closer.Close()
}
