package compactor

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	// trimPage bounds how many segments one command lets go of.
	trimPage = 256
	// trimStreams bounds how many streams one step looks at, trimSteps how many commands
	// it takes for each.
	trimStreams = 256
	trimSteps   = 64
	// trimmers is how many streams wait for the committer at a time: they share its
	// syncs.
	trimmers = 64
	// sweepPage bounds how many objects are removed at a time.
	sweepPage = 1000
)

// trim lets go of segments that nothing needs. It reports whether any were.
func (c *Compactor) trim(ctx context.Context) (bool, error) {
	v := c.hot.View()
	ids, err := v.Trimmable(trimStreams)
	v.Close()
	if err != nil {
		return false, err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(trimmers)
	more := false
	spared := c.spared()
	for _, id := range ids {
		if spared[id] {
			continue
		}
		more = true
		g.Go(func() error { return c.spare(id, c.trimStream(gctx, id)) })
	}
	return more, g.Wait()
}

// trimStream lets go of segments of a stream, or of one that is gone, in steps.
func (c *Compactor) trimStream(ctx context.Context, id stream.ID) error {
	for from, step := uint64(0), 0; step < trimSteps; step++ {
		r, err := c.hot.TrimFrom(ctx, id, from, trimPage)
		if err != nil {
			return err
		}
		c.metrics.trimmed.Add(float64(r.Segments))
		if r.Done {
			return nil
		}
		from = r.Next
	}
	return nil
}

// sweep removes a page of objects whose grace is over, and gives up intents that nobody
// followed up. An object leaves the catalog when the store has confirmed that it
// is gone; if that answer is lost, the next sweep asks again. It reports whether there
// may be another page: other work has its turn between two.
func (c *Compactor) sweep(ctx context.Context) (more bool, err error) {
	v := c.hot.View()
	due, err := v.Due(c.hot.Now(), sweepPage)
	v.Close()
	if err != nil || len(due) == 0 {
		return false, err
	}
	retired := make([]string, len(due))
	for i, d := range due {
		retired[i] = d.Object
	}
	// What the newest copy of the catalog may still name has to wait for another one.
	waits := c.hot.Uncopied(retired)
	c.waiting.Store(int64(len(waits)))
	more = len(due) == sweepPage && len(waits) == 0
	var stale, remote, local []string
	for _, d := range due {
		switch {
		case d.State == hot.Intended:
			stale = append(stale, d.Object)
		case waits[d.Object]:
		case c.opts.Local != nil && cold.IsLocal(d.Object):
			local = append(local, d.Object)
		default:
			remote = append(remote, d.Object)
		}
	}
	if len(stale) > 0 {
		if err := c.hot.Abandon(ctx, stale...); err != nil {
			return false, err
		}
	}
	// Trouble with one store, or with some of its objects, keeps nothing else.
	return more, errors.Join(c.remove(ctx, c.opts.Local, local), c.remove(ctx, c.opts.Cold, remote))
}

// remove removes retired objects. Those that the store does not confirm are put off,
// so that a few stuck ones do not stand before all others for ever.
func (c *Compactor) remove(ctx context.Context, store *cold.Store, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	if err := store.CheckOwner(ctx); err != nil {
		return err
	}
	gone, err := store.Delete(ctx, keys)
	if len(gone) > 0 {
		if ferr := c.hot.Forget(ctx, gone); ferr != nil {
			return ferr
		}
		c.metrics.swept.Add(float64(len(gone)))
		c.log.Info("objects removed", "count", len(gone))
	}
	if err == nil {
		return nil
	}
	stuck := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(gone, k) })
	return errors.Join(err, c.hot.Postpone(ctx, stuck))
}
