package backup

import (
	"context"
	"fmt"

	"firn/internal/blob"
	"firn/tier/hot"
)

// keepComplete is how many complete generations are always kept.
const keepComplete = 2

// obsolete returns the generations to remove: all but the newest complete ones, once
// they are superseded for longer than the grace, or were never completed. A generation
// is superseded when a newer base is there, so its copies are at least as old.
func obsolete(list []hot.GenerationRecord, now, grace uint64) []hot.Generation {
	var gone []hot.Generation
	complete := 0
	for i := len(list) - 1; i >= 0; i-- {
		g := list[i]
		if g.Complete {
			complete++
		}
		switch {
		case g.SupersededAt == 0, g.Complete && complete <= keepComplete:
		case !g.Complete, g.SupersededAt+grace <= now:
			gone = append(gone, g.Generation)
		}
	}
	return gone
}

// prune removes obsolete generations. The catalog says which: it has known them since
// before their first object. The listing only tells how many objects one has, all of
// them below a prefix that nothing else is written to.
func (r *Runner) prune(ctx context.Context) error {
	v := r.hot.View()
	list, err := v.Generations()
	v.Close()
	if err != nil {
		return err
	}
	for _, g := range obsolete(list, r.hot.Now(), uint64(r.opts.Grace.Milliseconds())) {
		if err := r.remove(ctx, g); err != nil {
			return fmt.Errorf("remove old copies: %w", err)
		}
	}
	return nil
}

func (r *Runner) remove(ctx context.Context, g hot.Generation) error {
	store := r.hot.ID()
	var keys []string
	err := r.blobs.List(ctx, prefixOf(store)+g.String()+"/", "", func(i blob.Info) error {
		if n, ok := parseName(store, i.Key); ok && n.generation == g {
			keys = append(keys, i.Key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		if err := r.blobs.Delete(ctx, keys...); err != nil {
			return err
		}
	}
	r.log.Info("old copies of the catalog removed", "generation", g.String(), "objects", len(keys))
	return r.hot.ForgetGeneration(ctx, g)
}
