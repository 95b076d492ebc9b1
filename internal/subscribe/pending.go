package subscribe

import (
	"context"
	"errors"
	"maps"
	"slices"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// pageNames is how many names are looked at under one view.
const pageNames = 1000

// state is a stream as a subscription sees it at one moment.
type state struct {
	name     stream.Name
	explicit bool
	acked    hot.Cursor
	tail     hot.Cursor // that of acked when there is no such stream
}

func (s state) pending() bool { return s.acked != s.tail }

// stateOf looks at a stream; linked is false when it is none of the subscription's.
// A stream that the pattern links without a record is younger than the subscription:
// all that is its own is pending.
func (e *Engine) stateOf(v *hot.View, n *entry, number uint64, name stream.Name) (s state, linked bool, err error) {
	link, err := v.Link(number, name)
	if err != nil {
		return state{}, false, err
	}
	if link == nil && !n.matched(name) {
		return state{}, false, nil
	}
	s.name = name
	if link != nil {
		s.explicit, s.acked = link.Explicit, link.Cursor
	}
	rec, err := e.visible(v, name)
	if err != nil {
		return state{}, false, err
	}
	if rec != nil && s.acked.Stream != rec.ID {
		s.acked = hot.CursorAt(rec, rec.Base)
	}
	s.tail = s.acked
	if rec != nil {
		s.tail.Position = max(rec.Tail, s.acked.Position)
	}
	return s, true, nil
}

// visible returns the record of a stream that clients can use, nil when there is none.
func (e *Engine) visible(v *hot.View, name stream.Name) (*hot.Record, error) {
	rec, err := v.Stream(name)
	switch {
	case errors.Is(err, stream.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case rec.Deleted || e.hot.Expired(rec):
		return nil, nil
	}
	return rec, nil
}

// collect returns at most limit streams with pending work, in the order of names; which
// ones is left to chance, so that none waits for ever behind busier ones. What it finds
// stays marked until it is acked.
func (e *Engine) collect(ctx context.Context, n *entry, limit int) ([]state, error) {
	select {
	case n.collecting <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-n.collecting }()
	for {
		e.mu.Lock()
		marked, number := n.pending, n.sub.Number
		n.pending = make(map[stream.Name]struct{}) // for what grows meanwhile
		e.mu.Unlock()

		found, err := e.sift(n, number, marked, limit)

		e.mu.Lock()
		for name := range marked {
			e.mark(n, name)
		}
		search := err == nil && len(found) == 0 && (n.more || n.unknown)
		if search {
			n.more, n.unknown = false, false
		}
		e.mu.Unlock()
		if !search {
			return found, err
		}
		if err := e.search(ctx, n); err != nil {
			e.mu.Lock()
			n.more = true
			e.mu.Unlock()
			return nil, err
		}
	}
}

// sift takes the streams without pending work out of those marked, until it has found
// limit others.
func (e *Engine) sift(n *entry, number uint64, marked map[stream.Name]struct{}, limit int) ([]state, error) {
	v := e.hot.View()
	defer v.Close()
	var found []state
	for name := range marked {
		if len(found) == limit {
			break
		}
		s, linked, err := e.stateOf(v, n, number, name)
		if err != nil {
			return nil, err
		}
		if linked && s.pending() {
			found = append(found, s)
		} else {
			delete(marked, name)
		}
	}
	slices.SortFunc(found, func(a, b state) int { return compareNames(a.name, b.name) })
	return found, nil
}

// again looks at streams once more and leaves out what is not pending any more.
func (e *Engine) again(n *entry, number uint64, streams []state) ([]state, error) {
	v := e.hot.View()
	defer v.Close()
	left := streams[:0]
	for _, s := range streams {
		s, linked, err := e.stateOf(v, n, number, s.name)
		if err != nil {
			return nil, err
		}
		if linked && s.pending() {
			left = append(left, s)
		}
	}
	return left, nil
}

// search marks all streams of a subscription that have pending work.
func (e *Engine) search(ctx context.Context, n *entry) error {
	e.mu.Lock()
	explicit, number := slices.Collect(maps.Keys(n.explicit)), n.sub.Number
	e.mu.Unlock()
	for page := range slices.Chunk(explicit, pageNames) {
		if err := e.markPage(n, number, page); err != nil {
			return err
		}
	}
	return e.matching(ctx, n, func(v *hot.View, name stream.Name) error {
		return e.markPending(v, n, number, name)
	})
}

// matching calls fn for the existing streams that the pattern of a subscription links,
// in pages under one view each.
func (e *Engine) matching(ctx context.Context, n *entry, fn func(*hot.View, stream.Name) error) error {
	if n.pattern.Empty() {
		return nil
	}
	first, within := n.scope.span(n.pattern.Prefix())
	return e.names(ctx, first, func(v *hot.View, name stream.Name) (bool, error) {
		if !within(name) {
			return false, nil
		}
		if !n.matched(name) {
			return true, nil
		}
		return true, fn(v, name)
	})
}

// names walks the names in use from one on, in pages under one view each, until fn
// returns false.
func (e *Engine) names(ctx context.Context, from stream.Name, fn func(*hot.View, stream.Name) (bool, error)) error {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		more = false
		count := 0
		v := e.hot.View()
		err := v.AllNames(from, func(name stream.Name, _ stream.ID) (bool, error) {
			if count++; count > pageNames {
				from, more = name, true
				return false, nil
			}
			return fn(v, name)
		})
		v.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) markPending(v *hot.View, n *entry, number uint64, name stream.Name) error {
	s, linked, err := e.stateOf(v, n, number, name)
	if err != nil || !linked || !s.pending() {
		return err
	}
	e.mu.Lock()
	e.mark(n, name)
	e.mu.Unlock()
	return nil
}

func (e *Engine) markPage(n *entry, number uint64, names []stream.Name) error {
	v := e.hot.View()
	defer v.Close()
	for _, name := range names {
		if err := e.markPending(v, n, number, name); err != nil {
			return err
		}
	}
	return nil
}
