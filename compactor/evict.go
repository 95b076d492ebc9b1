package compactor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/pkg/stream"
	"firn/tier/hot"
)

const (
	// evictPage bounds how many segments one step looks at.
	evictPage = 256
	// evictors is how many evictions wait for the committer at a time: they share
	// its syncs.
	evictors = 16
	// reclaimPause is the time after all parts have been rewritten in vain.
	reclaimPause = 10 * time.Second
)

// shrink gives up hot copies until the budget is kept, and all of them while the disk
// is below its reserve: space comes back only by rewriting what is left, for which there
// must be room. It reports whether it found anything to give up.
func (c *Compactor) shrink(ctx context.Context) (bool, error) {
	hotBytes, policy := c.hot.HotBytes(), c.opts.Policy
	if c.hot.DiskFull() {
		policy.Budget, policy.MinAge = 0, 0
	}
	if policy.surplus(hotBytes) == 0 {
		return false, nil
	}
	held, err := c.evictable()
	if err != nil {
		return false, err
	}
	list := policy.evict(held, hotBytes, c.hot.Now())
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(evictors)
	for _, h := range list {
		g.Go(func() error { return c.spare(h.ID, c.evict(gctx, h)) })
	}
	return len(list) > 0, g.Wait()
}

// evictable is a page of the segments whose hot copy may be given up, oldest first.
// What is in an object that is known to be damaged is kept: it may be the last copy.
func (c *Compactor) evictable() ([]hot.Held, error) {
	v := c.hot.View()
	defer v.Close()
	damaged, err := v.Damaged("", 1)
	if err != nil {
		return nil, err
	}
	kept := c.spared() // by stream
	var after hot.Held
	for {
		held, err := v.Held(after, evictPage)
		if err != nil || len(held) == 0 || len(damaged) == 0 && len(kept) == 0 {
			return held, err
		}
		after = held[len(held)-1]
		list := held[:0]
		for _, h := range held {
			if kept[h.ID] {
				continue
			}
			to, err := sound(v, h.ID, h.From, h.To)
			switch {
			case err != nil:
				return nil, err
			case to < h.To:
				kept[h.ID] = true // with all that follows: a cut gives up what is below it
			default:
				list = append(list, h)
			}
		}
		if len(list) > 0 {
			return list, nil
		}
	}
}

// sound is the position up to which the segments of a range are not known to be damaged.
func sound(v *hot.View, id stream.ID, from, to uint64) (uint64, error) {
	for from < to {
		refs, err := v.Segments(id, from, to, evictPage)
		if err != nil || len(refs) == 0 {
			return to, err
		}
		for _, r := range refs {
			d, err := v.Damage(r.Object)
			if err != nil {
				return 0, err
			}
			if d != 0 {
				return max(from, r.From), nil
			}
		}
		from = refs[len(refs)-1].To
	}
	return to, nil
}

func (c *Compactor) evict(ctx context.Context, h hot.Held) error {
	err := c.hot.Evict(ctx, h.ID, h.To)
	switch {
	case errors.Is(err, hot.ErrConflict):
		// The stream is gone; its entry goes with its segments.
		return nil
	case err != nil:
		return err
	}
	c.metrics.evictions.Inc()
	c.metrics.evictedBytes.Add(float64(h.To - h.From))
	return nil
}

// reclaimAll reclaims after passes until ctx ends.
func (c *Compactor) reclaimAll(ctx context.Context) {
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.passed:
		}
		for more := true; more; {
			var err error
			more, err = c.Reclaim(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil && !failing {
				c.log.Error("cannot give space back to the disk, trying again", "err", err)
			}
			failing = err != nil
		}
	}
}

// Reclaim gives space of evicted and deleted bytes back to the disk. Pebble does that
// when it happens to rewrite the files that they are in, which under load is soon
// enough: see docs/decisions.md. One call rewrites a part. It reports whether there may
// be more to do at once. It is for one goroutine.
func (c *Compactor) Reclaim(ctx context.Context) (bool, error) {
	if time.Now().Before(c.reclaimed.next) {
		return false, nil
	}
	bloated, err := c.hot.Bloated()
	if err != nil {
		return false, err
	}
	r := &c.reclaimed
	if !bloated {
		*r = reclamation{}
		return false, nil
	}
	if err := c.hot.Reclaim(ctx, r.part); err != nil {
		return false, err
	}
	c.metrics.reclaims.Inc()
	if r.part++; r.part < hot.ReclaimParts {
		return true, nil
	}
	// Something else holds the space, such as a reader's view: do not hurry.
	r.part, r.rounds = 0, r.rounds+1
	r.next = time.Now().Add(reclaimPause << min(r.rounds, 6))
	return false, nil
}

// reclamation is how far it is.
type reclamation struct {
	part, rounds int
	next         time.Time
}
