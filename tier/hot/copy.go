package hot

import (
	"bytes"
	"maps"
	"slices"

	"firn/pkg/stream"
)

// Copy is what a copy of the catalog at one moment takes: everything, or what has
// changed since the copy before it, with the bytes of streams that have no cold copy.
// It keeps a view open and must be ended.
type Copy struct {
	// Base: it takes everything.
	Base bool
	// Ms is its moment, Life the last life given by then.
	Ms, Life uint64

	changes *changes
	set     *changeSet // nil for a base
	view    *View
}

// CopyOp is what an entry of a copy does to the catalog that it is applied to.
type CopyOp byte

const (
	// CopySet gives a key a value.
	CopySet CopyOp = 1
	// CopyDelete takes a key away.
	CopyDelete CopyOp = 2
	// CopyDeleteRange takes the keys from Key up to Value, excluded, away.
	CopyDeleteRange CopyOp = 3
)

// CopyEntry is one step from the copy before it to a copy. Applying it again changes
// nothing.
type CopyEntry struct {
	Op         CopyOp
	Key, Value []byte
}

// BeginCopy takes the changes since the last copy and a view of them; base asks for
// everything. It is everything also when the changes are not known: at first, and when
// they have grown too many. Changes must be tracked, and no other copy be under way.
func (s *Store) BeginCopy(base bool) *Copy {
	c := s.changes.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &Copy{
		Base: base || c.since == nil, Ms: s.now(), Life: s.state.Load().Life,
		changes: c, view: s.View(),
	}
	if p.Base {
		c.flyingAll = true
	} else {
		p.set, c.flying = c.since, c.since
	}
	c.since = newChangeSet()
	return p
}

// End ends a copy. Unless it was made, what it was to take is left to the next one.
func (p *Copy) End(made bool) {
	p.view.Close()
	c := p.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case made:
	case p.Base:
		c.since = nil
	case c.since != nil:
		c.since.merge(p.set)
		c.bound()
	}
	c.flying, c.flyingAll = nil, false
}

// Empty reports whether nothing has changed.
func (p *Copy) Empty() bool { return !p.Base && p.set.empty() }

// Entries calls fn for each entry, in the order in which they are to be applied. Key
// and value are valid during the call.
func (p *Copy) Entries(fn func(CopyEntry) error) error {
	if p.Base {
		return p.everything(fn)
	}
	for _, r := range p.set.ranges {
		if err := fn(CopyEntry{Op: CopyDeleteRange, Key: []byte(r.from), Value: []byte(r.to)}); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.set.keys)) {
		if err := p.key([]byte(k), fn); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.set.tails)) {
		if err := p.unsealed(id, p.set.tails[id], fn); err != nil {
			return err
		}
	}
	return nil
}

// key emits the state of a key that has changed.
func (p *Copy) key(k []byte, fn func(CopyEntry) error) error {
	v, err := get(p.view.s.snap, k)
	switch {
	case err != nil:
		return err
	case v == nil:
		return fn(CopyEntry{Op: CopyDelete, Key: k})
	}
	return fn(CopyEntry{Op: CopySet, Key: k, Value: v})
}

func (p *Copy) everything(fn func(CopyEntry) error) error {
	emit := func(key, value []byte) (bool, error) {
		return true, fn(CopyEntry{Op: CopySet, Key: key, Value: value})
	}
	// Between these lie the kinds that are not copied.
	for _, r := range [][2]byte{{0, kindGeneration}, {kindGeneration + 1, kindData}, {kindData + 1, kindScrub}, {kindScrub + 1, 0xff}} {
		if err := p.view.scanRange([]byte{r[0]}, []byte{r[1]}, emit); err != nil {
			return err
		}
	}
	return p.view.scan([]byte{kindUnsealed}, nil, func(key, _ []byte) (bool, error) {
		return true, p.unsealed(stream.ID(field(key, 9)), 0, fn)
	})
}

// unsealed emits the data values of a stream that hold bytes without a cold copy, from
// a position on.
func (p *Copy) unsealed(id stream.ID, from uint64, fn func(CopyEntry) error) error {
	rec, err := loadRecord(p.view.s.snap, id)
	if err == stream.ErrNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if from = max(from, rec.Sealed); from >= rec.Tail {
		return nil
	}
	it, err := p.view.s.snap.NewIter(iterOptions(keyOf(kindData, id), keyData(id, rec.Tail)))
	if err != nil {
		return err
	}
	// The value that holds the position may begin before it.
	for ok := seekValue(it, id, from); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = fn(CopyEntry{Op: CopySet, Key: bytes.Clone(it.Key()), Value: value})
		}
		if err != nil {
			return closeIter(it, err)
		}
	}
	return closeIter(it, nil)
}
