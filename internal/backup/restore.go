package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"firn/internal/blob"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// RestoreOptions configures [Restore]. From, To and Dir are required.
type RestoreOptions struct {
	ArchiveOptions
	// Dir is where the hot tier is to be; it must not hold one.
	Dir   string
	Until time.Time
	// Wanted says which streams are restored; nil is all of them.
	Wanted func(stream.Name) bool
	Hot    hot.Options
	// Stream is told of every stream that was restored.
	Stream func(hot.Rebuilt) error
}

// Restore makes a store in another bucket from a copy: all objects that the wanted
// streams need, and a hot tier. Nothing changes in the bucket that it comes from. The
// other one must not be anybody's. Errors: [hot.ErrNotEmpty], [ErrNoCopy],
// [cold.ErrForeign], [ErrVersion], those of the buckets.
func Restore(ctx context.Context, o RestoreOptions) (*Report, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Stream == nil {
		o.Stream = func(hot.Rebuilt) error { return nil }
	}
	h, err := hot.StartRebuild(o.Dir, o.Hot)
	if err != nil {
		return nil, err
	}
	// What was sealed after the copy stays behind: the copy is what is restored.
	until := o.Until
	if until.IsZero() {
		until = time.UnixMilli(1<<62 - 1)
	}
	b := &rebuild{
		RebuildOptions: RebuildOptions{Blobs: o.From, Until: until, Logger: o.Logger}, hot: h, report: newReport(),
	}
	if err := b.restore(ctx, o); err != nil {
		return nil, errors.Join(err, h.Abandon())
	}
	return b.report, h.Finish()
}

func (b *rebuild) restore(ctx context.Context, o RestoreOptions) error {
	taken, _, err := cold.ReadOwner(ctx, o.To)
	if err != nil {
		return err
	}
	if taken != nil {
		return fmt.Errorf("%w: %s (%s); restore to an empty prefix", cold.ErrForeign, taken.Store, taken.Host)
	}
	if b.store, err = storeOf(ctx, o.From); err != nil {
		return err
	}
	b.report.Store, b.owner = b.store, &cold.Owner{}
	chains, err := chainsOf(ctx, o.From, b.store)
	if err != nil {
		return err
	}
	if err := b.load(ctx, chains); err != nil {
		return err
	}
	b.Stream = func(s hot.Rebuilt) error {
		if o.Wanted != nil && !o.Wanted(s.Name) {
			b.report.Streams--
			return nil
		}
		return o.Stream(s)
	}
	err = b.hot.Reconcile(b.reconcileOptions(nil))
	if err == nil && o.Wanted != nil {
		err = b.hot.Keep(o.Wanted)
	}
	if err != nil {
		return err
	}
	t, err := newTransfer(o.From, o.To, o.Progress)
	if err != nil {
		return err
	}
	if err := t.objects(ctx, b.hot, b.store); err != nil {
		return err
	}
	b.report.MissingCount = len(t.missing)
	b.report.Missing = append(b.report.Missing, t.missing[:min(len(t.missing), maxMissing)]...)
	b.report.Stopped = true // nothing is said to be there that came after the copy
	b.Blobs = o.To
	return b.claim(ctx)
}

// storeOf returns the store whose copies are under a prefix: that of the owner record,
// or of an archive the only one there.
func storeOf(ctx context.Context, blobs blob.Store) (string, error) {
	owner, _, err := cold.ReadOwner(ctx, blobs)
	if err != nil {
		return "", err
	}
	if owner != nil {
		return owner.Store, nil
	}
	var stores []string
	for after := ""; ; {
		var id string
		err := blobs.List(ctx, "", after, func(i blob.Info) error {
			id, _, _ = strings.Cut(i.Key, "/")
			return errEnough
		})
		if err != nil && !errors.Is(err, errEnough) {
			return "", err
		}
		if id == "" {
			break
		}
		if _, err := stream.ParseID(id); err == nil {
			stores = append(stores, id)
		}
		after = id + "0" // behind all that begins with it and a slash
	}
	if len(stores) != 1 {
		return "", fmt.Errorf("%w: there is no owner record, and there are objects of %d stores; is it the right bucket and prefix?", ErrNoCopy, len(stores))
	}
	return stores[0], nil
}
