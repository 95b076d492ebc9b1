package compactor

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

const (
	// duePage is how many streams are looked at under one view.
	duePage = 1024
	// dueObjects bounds how many objects one pass makes of the streams that are ready,
	// and as many of those that have old bytes: then eviction has its turn.
	dueObjects = 16
	// pendingStreams bounds how many streams wait for others to be packed with, in all
	// buckets together.
	pendingStreams = 1 << 16
)

// seal makes objects of the streams that are due: one of each that has much to seal,
// and packs of those with little. One that fails is left alone for a while, so that it
// does not keep the others waiting.
func (c *Compactor) seal(ctx context.Context) (bool, error) {
	// Trouble with one stream does not stop the others, an outage does.
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opts.Concurrency)
	var sealed atomic.Uint64
	d := c.newDue(func(ids []stream.ID) error {
		g.Go(func() error {
			n, err := c.sealAll(gctx, ids)
			sealed.Add(n)
			return c.judge(gctx, err, ids...)
		})
		return gctx.Err()
	})
	err := d.walk(gctx)
	if gerr := g.Wait(); gerr != nil {
		err = gerr
	}
	return sealed.Load() > 0, err
}

// due walks the streams that are due, page by page, and gathers what becomes one
// object. Its memory does not grow with the number of streams.
type due struct {
	c       *Compactor
	start   func(ids []stream.ID) error // begins an object
	owner   bool                        // somebody has asked whether this process is it
	made    int
	groups  map[groupKey]*group
	pending int
	// round: a small stream does not wait any longer. Then all small ones go that have
	// half of its age, in all buckets: the next round comes half an age later, and one
	// stream whose time has come never has an object to itself because the others'
	// comes a second later.
	round bool
	// late are the streams at which the last pass met trouble of the object store. They
	// come last in this one, in case the trouble is with them alone.
	late    map[stream.ID]bool
	waiting []candidate
}

// candidate is a stream that may be due, as a view has it.
type candidate struct {
	hot.Aged
	groupKey
	unsealed uint64
	ready    bool
}

// groupKey is what the streams of a pack have in common.
type groupKey struct {
	bucket string
	mode   stream.Mode
}

type group struct {
	ids   []stream.ID
	bytes uint64
}

func (c *Compactor) newDue(start func([]stream.ID) error) *due {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := &due{c: c, start: start, groups: make(map[groupKey]*group), late: c.late}
	c.late = make(map[stream.ID]bool)
	return d
}

// walk takes those with enough bytes, those with old bytes and, while the hot tier
// cannot be brought down to its budget otherwise, those with the oldest ones.
func (d *due) walk(ctx context.Context) error {
	v := d.c.hot.View()
	d.c.relieve(v)
	v.Close()
	for _, step := range []func(context.Context) error{d.walkReady, d.walkAged, d.flush, d.takeWaiting, d.flush} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// walkReady goes once around the streams that are ready.
func (d *due) walkReady(ctx context.Context) error {
	d.c.mu.Lock()
	from := d.c.readyFrom
	d.c.mu.Unlock()
	at, around := from, false
	for d.made < dueObjects {
		page, err := d.page(func(v *hot.View) ([]hot.Aged, error) {
			ids, err := v.Ready(at, duePage)
			list := make([]hot.Aged, len(ids))
			for i, id := range ids {
				list[i].ID = id
			}
			return list, err
		})
		if err != nil {
			return err
		}
		for _, a := range page {
			if around && a.ID > from || d.made == dueObjects {
				return d.readyUpTo(at)
			}
			at = a.ID
			if err := d.take(ctx, a, true); err != nil {
				return err
			}
		}
		if len(page) == duePage {
			continue
		}
		if around || from == 0 {
			return d.readyUpTo(0)
		}
		at, around = 0, true
	}
	return d.readyUpTo(at)
}

func (d *due) readyUpTo(id stream.ID) error {
	d.c.mu.Lock()
	defer d.c.mu.Unlock()
	d.c.readyFrom = id
	return nil
}

// walkAged goes through the streams from the one with the oldest unsealed byte on.
func (d *due) walkAged(ctx context.Context) error {
	p, now := d.c.opts.Policy, d.c.hot.Now()
	short := p.short(d.c.hot.HotBytes(), d.c.hot.UnsealedBytes())
	var at hot.Aged
	for most := d.made + dueObjects; d.made < most; {
		old := func(a hot.Aged) bool { return p.aged(a.Ms, now) || short > 0 }
		page, err := d.page(func(v *hot.View) ([]hot.Aged, error) {
			list, err := v.Unsealed(at, duePage)
			if len(list) > 0 && !old(list[0]) && !d.round {
				list = nil // records need not be looked at to know that nothing is due
			}
			return list, err
		})
		if err != nil {
			return err
		}
		for _, a := range page {
			at = a.Aged
			old := old(a.Aged)
			if !old && !(d.round && p.companion(a.Ms, now)) {
				return nil
			}
			if !d.c.resting(a.ID) { // others have to make up for one that rests
				short -= min(short, a.unsealed, p.Target)
			}
			if a.ready {
				continue // the walk over those has it
			}
			if err := d.take(ctx, a, old); err != nil {
				return err
			}
			if d.made == most {
				return nil
			}
		}
		if len(page) < duePage {
			return nil
		}
	}
	return nil
}

// page reads a page of an index and the records of its streams.
func (d *due) page(list func(*hot.View) ([]hot.Aged, error)) ([]candidate, error) {
	v := d.c.hot.View()
	defer v.Close()
	ids, err := list(v)
	if err != nil {
		return nil, err
	}
	page := make([]candidate, len(ids))
	for i, a := range ids {
		page[i].Aged = a
		rec, err := v.Peek(a.ID)
		if err != nil {
			return nil, err
		}
		page[i].groupKey = groupKey{rec.Name.Bucket, rec.Mode}
		page[i].unsealed, page[i].ready = rec.Unsealed(), rec.Ready
	}
	return page, nil
}

// take adds a stream to what is sealed. One that is not old itself only goes along in a
// round.
func (d *due) take(ctx context.Context, a candidate, old bool) error {
	switch {
	case d.c.resting(a.ID):
		return nil
	case d.late[a.ID]:
		if old && len(d.waiting) < pendingStreams {
			d.waiting = append(d.waiting, a)
		}
		return nil
	}
	return d.gather(ctx, a, old)
}

func (d *due) gather(ctx context.Context, a candidate, old bool) error {
	if !hot.Small(a.unsealed, d.c.opts.Policy.Target) {
		if !old {
			return nil
		}
		return d.object(ctx, []stream.ID{a.ID})
	}
	d.round = d.round || old
	g := d.groups[a.groupKey]
	if g == nil {
		g = &group{}
		d.groups[a.groupKey] = g
	}
	g.ids = append(g.ids, a.ID)
	g.bytes += a.unsealed
	d.pending++
	if g.bytes >= d.c.opts.Policy.Target || len(g.ids) == segment.MaxEntries {
		return d.pack(ctx, a.groupKey)
	}
	if d.pending >= pendingStreams {
		return d.flush(ctx)
	}
	return nil
}

// pack makes an object of a group.
func (d *due) pack(ctx context.Context, k groupKey) error {
	g := d.groups[k]
	delete(d.groups, k)
	d.pending -= len(g.ids)
	return d.object(ctx, g.ids)
}

// flush makes objects of all groups.
func (d *due) flush(ctx context.Context) error {
	for k := range d.groups {
		if err := d.pack(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (d *due) takeWaiting(ctx context.Context) error {
	for _, a := range d.waiting {
		if err := d.gather(ctx, a, true); err != nil {
			return err
		}
	}
	return nil
}

// object makes an object of streams' unsealed bytes. Before the first one, the owner
// of the bucket is asked for: one that was superseded must not change anything.
func (d *due) object(ctx context.Context, ids []stream.ID) error {
	if !d.owner {
		if err := d.c.opts.Cold.CheckOwner(ctx); err != nil {
			return err
		}
		d.owner = true
	}
	d.made++
	return d.start(ids)
}
