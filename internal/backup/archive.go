package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"firn/internal/blob"
	"firn/tier/cold"
	"firn/tier/hot"
)

// ArchiveOptions configures [Archive] and is part of [RestoreOptions]. From and To are
// required.
type ArchiveOptions struct {
	From, To blob.Store
	Logger   *slog.Logger
	// Progress, if set, is called after each object.
	Progress func(Progress)
}

// Archived is what an [Archive] has done.
type Archived struct {
	Store string `json:"store"`
	// Copy is the moment that the archive can be restored to.
	Copy    time.Time `json:"copy"`
	Objects int       `json:"objects"`
	Copied  int       `json:"copied"`
	Bytes   int64     `json:"copied_bytes"`
	// Missing are objects that the catalog names and that are not there.
	Missing []string `json:"missing_objects"`
}

// Archive brings the newest copy of the catalog, and all objects that it names, to
// another bucket; what is there already stays. The copy goes last: as soon as it is
// there, so is all that it names. Errors: [ErrNoCopy], those of the buckets.
func Archive(ctx context.Context, o ArchiveOptions) (*Archived, error) {
	owner, _, err := cold.ReadOwner(ctx, o.From)
	if err != nil {
		return nil, err
	}
	if owner == nil {
		return nil, fmt.Errorf("%w: there is no owner record; is it the right bucket and prefix?", ErrNoCopy)
	}
	dir, err := os.MkdirTemp("", "firn-archive-*")
	if err != nil {
		return nil, fmt.Errorf("make room for the catalog: %w", err)
	}
	defer os.RemoveAll(dir)
	h, err := hot.StartRebuild(filepath.Join(dir, "hot"), hot.Options{})
	if err != nil {
		return nil, err
	}
	done, err := archive(ctx, o, h, owner.Store)
	return done, errors.Join(err, h.Abandon())
}

func archive(ctx context.Context, o ArchiveOptions, h *hot.Rebuild, store string) (*Archived, error) {
	b := &rebuild{RebuildOptions: RebuildOptions{Blobs: o.From, Logger: o.Logger}, hot: h, report: newReport(), store: store}
	if b.Logger == nil {
		b.Logger = slog.New(slog.DiscardHandler)
	}
	chains, err := chainsOf(ctx, o.From, store)
	if err != nil {
		return nil, err
	}
	if err := b.load(ctx, chains); err != nil {
		return nil, err
	}
	t, err := newTransfer(o.From, o.To, o.Progress)
	if err != nil {
		return nil, err
	}
	if err := t.objects(ctx, h, store); err != nil {
		return nil, err
	}
	if err := b.chain(ctx, chains, t); err != nil {
		return nil, err
	}
	slices.Sort(t.missing)
	return &Archived{
		Store: store, Copy: b.report.Copy, Objects: t.done.Objects, Copied: t.done.Copied, Bytes: t.done.Bytes,
		Missing: append([]string{}, t.missing...),
	}, nil
}

// chain copies the objects of the copies that were loaded, in order.
func (b *rebuild) chain(ctx context.Context, chains []Chain, t *transfer) error {
	there := make(map[string]int64)
	for i, err := range listed(ctx, t.to, prefixOf(b.store)) {
		if err != nil {
			return err
		}
		there[i.Key] = i.Size
	}
	r, err := newReader(b.Blobs, b.store)
	if err != nil {
		return err
	}
	defer r.dec.Close()
	for _, c := range chains {
		if c.Generation != b.used {
			continue
		}
		for _, p := range c.Points[:b.points] {
			for _, key := range p.keys {
				if _, ok := there[key]; ok {
					continue
				}
				o, err := r.get(ctx, key)
				if err == nil {
					err = put(ctx, t.to, key, o.whole)
				}
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}
