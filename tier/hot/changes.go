package hot

import (
	"fmt"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

const (
	// changesDue is how much memory the changes since the last copy may take before
	// the next one is due at once, in bytes, counted roughly. At changesLost times as
	// much they are forgotten, and the next copy is a base.
	changesDue  = 32 << 20
	changesLost = 4
	// changeCost is what a key takes beside its bytes.
	changeCost = 64
)

// changes knows what has changed since the last copy of the catalog. Adding a batch
// and publishing it is one step, and so is taking the changes and the view that they
// lead to: a copy holds all of a batch or nothing.
type changes struct {
	mu sync.Mutex // guards what follows; held over a commit
	// since are the changes since the last copy began; nil if they are not known, so
	// that the next copy is to be a base.
	since *changeSet
	// flying are those of the copy under way, nil if none is; flyingAll: it is a base.
	flying    *changeSet
	flyingAll bool
	// due takes a value when the changes have grown to limit bytes.
	due   chan struct{}
	limit int
}

// changeSet is a set of changes of the catalog. Later states of the same key make it
// no larger.
type changeSet struct {
	keys   map[string]struct{}
	ranges []deletedRange
	// tails are the tails, before the first change, of streams that grew.
	tails map[stream.ID]uint64
	bytes int
}

// deletedRange is what one range deletion took away: keys in [from, to).
type deletedRange struct{ from, to string }

func newChangeSet() *changeSet {
	return &changeSet{keys: make(map[string]struct{}), tails: make(map[stream.ID]uint64)}
}

// copied reports whether a key is part of a copy. Bytes of streams are looked up by
// their marks. What is known of copies is of no use in one, and how far the reading of
// all objects is would have an idle server make copies.
func copied(key []byte) bool {
	return key[0] != kindData && key[0] != kindGeneration && key[0] != kindScrub
}

func (c *changeSet) key(k []byte) {
	if _, known := c.keys[string(k)]; !known {
		c.keys[string(k)] = struct{}{}
		c.bytes += len(k) + changeCost
	}
}

func (c *changeSet) tail(id stream.ID, tail uint64) {
	was, known := c.tails[id]
	if !known {
		c.bytes += changeCost
	}
	if !known || tail < was {
		c.tails[id] = tail
	}
}

func (c *changeSet) deleted(r deletedRange) {
	c.ranges = append(c.ranges, r)
	c.bytes += len(r.from) + len(r.to) + changeCost
}

// add takes the changes of a batch that is about to be committed.
func (c *changeSet) add(t *txn) error {
	for r := t.batch.Reader(); ; {
		kind, k, v, ok, err := r.Next()
		if err != nil {
			return fmt.Errorf("read batch: %w", err)
		}
		if !ok {
			break
		}
		if !copied(k) {
			continue
		}
		if kind == pebble.InternalKeyKindRangeDelete {
			c.deleted(deletedRange{from: string(k), to: string(v)})
		} else {
			c.key(k)
		}
	}
	for _, id := range t.order {
		d := t.drafts[id]
		switch {
		case !d.grown():
		case d.base == nil:
			c.tail(id, d.rec.Base)
		default:
			c.tail(id, d.base.Tail)
		}
	}
	return nil
}

// merge adds older changes whose copy was not made.
func (c *changeSet) merge(older *changeSet) {
	for k := range older.keys {
		c.key([]byte(k))
	}
	for id, tail := range older.tails {
		c.tail(id, tail)
	}
	for _, r := range older.ranges {
		c.deleted(r)
	}
}

func (c *changeSet) empty() bool { return len(c.keys) == 0 && len(c.ranges) == 0 && len(c.tails) == 0 }

// grow adds a batch. The caller holds mu.
func (c *changes) grow(t *txn) error {
	if c.since == nil {
		return nil
	}
	if err := c.since.add(t); err != nil {
		return err
	}
	c.bound()
	return nil
}

// bound keeps the memory of the changes bounded: more of them than a base has is no
// gain. The caller holds mu.
func (c *changes) bound() {
	if c.since.bytes < c.limit {
		return
	}
	if c.since.bytes > changesLost*c.limit {
		c.since = nil
	}
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// TrackChanges makes the store remember what changes, for [Store.BeginCopy]. Until the
// first copy is made, nothing counts as copied.
func (s *Store) TrackChanges() {
	s.changes.CompareAndSwap(nil, &changes{due: make(chan struct{}, 1), limit: changesDue})
}

// Changed reports whether anything has changed since the last copy began, or might
// have. It is false while changes are not tracked.
func (s *Store) Changed() bool {
	c := s.changes.Load()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since == nil || !c.since.empty()
}

// CopyDue yields a value when so much has changed that a copy should not wait. It is
// nil, and never yields, while changes are not tracked.
func (s *Store) CopyDue() <-chan struct{} {
	if c := s.changes.Load(); c != nil {
		return c.due
	}
	return nil
}

// Uncopied returns those of some objects whose catalog entry has changed since the
// last copy of the catalog that was made: an older copy may name them. It is empty
// while changes are not tracked.
func (s *Store) Uncopied(objects []string) map[string]bool {
	c := s.changes.Load()
	if c == nil {
		return nil
	}
	uncopied := make(map[string]bool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range objects {
		if c.since.has(o) || c.flyingAll || c.flying != nil && c.flying.has(o) {
			uncopied[o] = true
		}
	}
	return uncopied
}

// has reports whether an object's entry may be among the changes; those that are not
// known may be any.
func (c *changeSet) has(object string) bool {
	if c == nil {
		return true
	}
	_, known := c.keys[string(keyObject(object))]
	return known
}
