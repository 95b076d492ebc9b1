package sim

import (
	"context"
	"fmt"
	"hash/crc32"

	"firn/internal/blob"
	"firn/internal/verify"
)

// passes is how many the compactor may need, without trouble, until nothing is left to
// do.
const passes = 200

// finish is the end of every run. The trouble is over; nothing may be left that cannot
// be sealed, given up, read, and removed when its time has come.
func (w *world) finish(ctx context.Context) error {
	for i := range w.sealings {
		w.drop(i)
	}
	if err := w.bucket.land(); err != nil {
		return err
	}
	if err := w.seal(ctx); err != nil {
		return err
	}
	for n, is := range w.model.names {
		if err := w.compactors[0].EvictStream(ctx, is.id); err != nil {
			return fmt.Errorf("give up %s: %w", n, err)
		}
	}
	if n := w.hot.HotBytes(); n != 0 {
		return fmt.Errorf("%d bytes stay hot", n)
	}
	if err := w.check(ctx, Step{}); err != nil {
		return fmt.Errorf("with all bytes cold: %w", err)
	}
	// All that was intended is given up, and then the graces end.
	for range 3 {
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	if err := w.swept(ctx); err != nil {
		return err
	}
	if err := w.check(ctx, Step{}); err != nil {
		return fmt.Errorf("after the graces: %w", err)
	}
	return w.removeAll(ctx)
}

// seal lets the compactor seal everything.
func (w *world) seal(ctx context.Context) error {
	for range passes {
		if err := w.tick(600_000); err != nil {
			return err
		}
		if err := w.observe(ctx, Step{}); err != nil {
			return err
		}
		if _, err := w.compactors[0].Pass(ctx); err != nil {
			return fmt.Errorf("pass without trouble: %w", err)
		}
		if w.hot.UnsealedBytes() == 0 {
			return nil
		}
	}
	return fmt.Errorf("%d bytes are not sealed after %d passes", w.hot.UnsealedBytes(), passes)
}

// doIdle lets all graces pass with nothing but sweeps.
func doIdle(ctx context.Context, w *world, s Step) error {
	for range 3 {
		if err := w.tick(uint64(keepHistory.Milliseconds()) + 1); err != nil {
			return err
		}
		if err := w.observe(ctx, s); err != nil {
			return err
		}
		if err := doSweep(ctx, w, s); err != nil {
			return err
		}
	}
	return nil
}

// wait lets the longest grace pass.
func (w *world) wait(ctx context.Context) error {
	if err := w.tick(uint64(keepHistory.Milliseconds()) + 1); err != nil {
		return err
	}
	if err := w.observe(ctx, Step{}); err != nil {
		return err
	}
	for range passes {
		// What was not copied since it changed is not removed.
		if err := doBackup(ctx, w, Step{Do: "backup"}); err != nil {
			return err
		}
		more, err := w.compactors[0].Pass(ctx)
		if err != nil {
			return fmt.Errorf("pass without trouble: %w", err)
		}
		if !more {
			return w.settle(ctx)
		}
	}
	return fmt.Errorf("there is work to do after %d passes", passes)
}

// swept compares the keys in the bucket with those that the catalog names.
func (w *world) swept(ctx context.Context) error {
	v := w.hot.View()
	defer v.Close()
	c, err := verify.Load(v.Reader(), verify.Options{})
	if err != nil {
		return err
	}
	keys := make(map[string]bool)
	err = w.bucket.List(ctx, "", "", func(i blob.Info) error {
		if !w.isCopy(i.Key) && !w.strays[i.Key] {
			keys[i.Key] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	delete(keys, "owner")
	for key, o := range c.Objects {
		if o.State != verify.Live && !(w.Forever && o.State == verify.Retired && o.Due == 0) {
			return fmt.Errorf("object %s is left in state %d, due at %d of %d", key, o.State, o.Due, w.model.now)
		}
		if !keys[key] {
			return fmt.Errorf("object %s is named and is not there", key)
		}
		delete(keys, key)
	}
	for key := range keys {
		return fmt.Errorf("object %s is there and nobody knows it", key)
	}
	return nil
}

// removeAll deletes all streams. Then the bucket is empty, but for what is kept for
// ever.
func (w *world) removeAll(ctx context.Context) error {
	for len(w.model.names) > 0 {
		for _, n := range w.model.sorted() {
			if is := w.model.names[n]; is == nil || is.deleted {
				continue
			}
			if err := doDelete(ctx, w, Step{Do: "delete", Stream: n.String()}); err != nil {
				return err
			}
		}
	}
	for range 2 {
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
	if err := w.swept(ctx); err != nil {
		return fmt.Errorf("after all streams are deleted: %w", err)
	}
	return w.check(ctx, Step{})
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
