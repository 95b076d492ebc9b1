package subscribe

import (
	"context"
	"errors"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// catchUp finds what was pending before this start: one walk over all names, whatever
// the number of subscriptions. Until it is done, a worker that asks has its own
// subscription searched.
func (e *Engine) catchUp(ctx context.Context) {
	entries := e.all()
	if len(entries) == 0 {
		return
	}
	err := e.names(ctx, stream.Name{}, func(v *hot.View, name stream.Name) (bool, error) {
		for n, number := range e.subscribers(name) {
			if err := e.markPending(v, n, number, name); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	e.mu.Lock()
	for _, n := range entries {
		if n.unknown {
			n.unknown = false
			n.more = n.more || err != nil // then each is searched by itself
			e.look(n)
		}
	}
	e.mu.Unlock()
	for _, n := range entries {
		if err == nil {
			err = e.findLost(ctx, n)
		}
	}
	if err != nil && ctx.Err() == nil {
		e.log.Error("cannot look through the subscriptions", "err", err)
	}
}

// all returns the subscriptions of the moment.
func (e *Engine) all() []*entry {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*entry, 0, len(e.entries))
	for _, n := range e.entries {
		if n.sub != nil {
			list = append(list, n)
		}
	}
	return list
}

// subscribers returns the subscriptions of a stream with their numbers.
func (e *Engine) subscribers(name stream.Name) map[*entry]uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list map[*entry]uint64
	e.index.match(name, func(n *entry) {
		if n.sub == nil {
			return
		}
		if list == nil {
			list = make(map[*entry]uint64)
		}
		list[n] = n.sub.Number
	})
	return list
}

// findLost notes the cursors in streams that went away unnoticed.
func (e *Engine) findLost(ctx context.Context, n *entry) error {
	number := e.record(n).Number
	var from stream.Name
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		more = false
		count := 0
		var lost []stream.Name
		v := e.hot.View()
		err := v.Links(number, from, func(l hot.Link) (bool, error) {
			if count++; count > pageNames {
				from, more = l.Name, true
				return false, nil
			}
			if l.Explicit {
				return true, nil
			}
			_, err := v.Incarnation(l.Stream)
			if errors.Is(err, stream.ErrNotFound) {
				lost = append(lost, l.Name)
				err = nil
			}
			return true, err
		})
		v.Close()
		if err != nil {
			return err
		}
		e.mu.Lock()
		for _, name := range lost {
			if !n.removed {
				e.left(n, name)
			}
		}
		e.mu.Unlock()
	}
	return nil
}

// sweep forgets the cursors in streams that are gone, so that names which come and go
// leave nothing behind. A cursor that is left, as when this is cut short, does no harm.
func (e *Engine) sweep(ctx context.Context) {
	for {
		e.mu.Lock()
		var of hot.SubscriptionRef
		var names []stream.Name
		for n, gone := range e.gone {
			if n.sub != nil {
				of, names = n.sub.Ref(), gone[:min(len(gone), pageNames)]
				if e.gone[n] = gone[len(names):]; len(e.gone[n]) == 0 {
					delete(e.gone, n)
				}
				break
			}
		}
		if len(names) == 0 || ctx.Err() != nil {
			e.sweeping = false
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
		names, err := e.linked(of.Number, names)
		if err == nil && len(names) > 0 {
			err = e.hot.SweepLinks(ctx, hot.SweepLinks{Of: of, Names: names})
		}
		if err != nil && !errors.Is(err, hot.ErrNoSubscription) && ctx.Err() == nil {
			e.log.Warn("cannot forget cursors of streams that are gone", "subscription", of.ID, "err", err)
		}
	}
}

// linked returns those of some names that a subscription has a cursor in.
func (e *Engine) linked(number uint64, names []stream.Name) ([]stream.Name, error) {
	v := e.hot.View()
	defer v.Close()
	var list []stream.Name
	for _, name := range names {
		l, err := v.Link(number, name)
		if err != nil {
			return nil, err
		}
		if l != nil {
			list = append(list, name)
		}
	}
	return list, nil
}

// record is the latest known record of a subscription.
func (e *Engine) record(n *entry) *hot.Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	return n.sub
}
