package compactor

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/tier/hot"
)

const (
	// evictPage bounds how many segments one step looks at.
	evictPage = 256
	// evictors is how many evictions wait for the committer at a time: they share
	// its syncs.
	evictors = 16
	// reclaimPause is the least time between two reclamations.
	reclaimPause = 10 * time.Second
)

// shrink gives up hot copies until the budget is kept. It reports whether it
// found anything to give up.
func (c *Compactor) shrink(ctx context.Context) (bool, error) {
	hotBytes := c.hot.HotBytes()
	if c.opts.Policy.surplus(hotBytes) == 0 {
		return false, nil
	}
	v := c.hot.View()
	held, err := v.Held(evictPage)
	v.Close()
	if err != nil {
		return false, err
	}
	list := c.opts.Policy.evict(held, hotBytes, c.hot.Now())
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(evictors)
	for _, h := range list {
		g.Go(func() error { return c.evict(gctx, h) })
	}
	return len(list) > 0, g.Wait()
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
	c.evicted.Add(h.To - h.From)
	return nil
}

// reclaim gives the space of evicted bytes back to the disk, when it is worth a
// compaction: Pebble drops deleted ranges of interleaved streams only when it
// happens to rewrite them.
func (c *Compactor) reclaim(ctx context.Context) error {
	worth := max(c.opts.Policy.Budget/8, 32<<20)
	if c.evicted.Load() < worth || time.Since(c.reclaimed) < reclaimPause {
		return nil
	}
	c.evicted.Store(0)
	err := c.hot.Reclaim(ctx)
	c.reclaimed = time.Now()
	c.metrics.reclaims.Inc()
	return err
}
