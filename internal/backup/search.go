package backup

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/tier/hot"
)

// tailReads is how many descriptors are read at a time.
const tailReads = 8

// candidate is an object that may hold what the copy does not know.
type candidate struct {
	blob.Info
	named bool // the copy names a part of it
}

// search compares the objects in the bucket with those that the copy names. It reports
// what is missing, and returns the ranges of segments that the copy does not know or
// only intended.
func (b *rebuild) search(ctx context.Context) ([]hot.Found, error) {
	var failed error
	live, stop := iter.Pull(func(yield func(string) bool) {
		failed = b.hot.LiveObjects(func(key string, _ uint64) bool { return yield(key) })
	})
	defer stop()
	next, more := live()
	missing := func(key string) {
		b.report.MissingCount++
		if len(b.report.Missing) < maxMissing {
			b.report.Missing = append(b.report.Missing, key)
		}
	}
	var unknown []candidate
	err := b.Blobs.List(ctx, b.store+"/bucket=", "", func(i blob.Info) error {
		for ; more && next < i.Key; next, more = live() {
			missing(next)
		}
		if more && next == i.Key {
			next, more = live()
		}
		ok, named, err := b.hot.Attachable(i.Key)
		if err == nil && ok && strings.HasSuffix(i.Key, ".zst") {
			unknown = append(unknown, candidate{i, named})
		}
		return err
	})
	for ; more && err == nil; next, more = live() {
		missing(next)
	}
	if err != nil || failed != nil || !b.Until.IsZero() {
		return nil, errors.Join(err, failed)
	}
	return b.describe(ctx, unknown)
}

// describe reads what segments say of themselves.
func (b *rebuild) describe(ctx context.Context, objects []candidate) ([]hot.Found, error) {
	var mu sync.Mutex // guards found and the report
	var found []hot.Found
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(tailReads)
	for _, i := range objects {
		g.Go(func() error {
			d, err := describe(ctx, b.Blobs, i.Info)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, segment.ErrCorrupt), errors.Is(err, segment.ErrVersion):
				b.report.Lost = append(b.report.Lost, LostRange{Object: i.Key, Reason: err.Error()})
				return nil
			case errors.Is(err, blob.ErrNotFound):
				return nil // it is gone since
			case err != nil:
				return err
			case d.Store != b.store:
				return nil
			}
			found = append(found, ranges(d, i)...)
			return nil
		})
	}
	return found, g.Wait()
}

// describe reads the descriptor of an object.
func describe(ctx context.Context, blobs blob.Store, i blob.Info) (*segment.Descriptor, error) {
	tail, info, err := blob.ReadAll(ctx, blobs, i.Key, -segment.TailHint, -1)
	if err != nil {
		return nil, err
	}
	d, err := segment.ParseTail(tail, info.Size)
	if short, ok := errors.AsType[*segment.ShortTailError](err); ok {
		if tail, _, err = blob.ReadAll(ctx, blobs, i.Key, -short.Need, -1); err != nil {
			return nil, err
		}
		d, err = segment.ParseTail(tail, info.Size)
	}
	return d, err
}

// ranges are those of an object.
func ranges(d *segment.Descriptor, i candidate) []hot.Found {
	content := uint64(0)
	for _, e := range d.Entries {
		content += e.To - e.From
	}
	list := make([]hot.Found, len(d.Entries))
	for n, e := range d.Entries {
		list[n] = hot.Found{
			Name: d.Name(n), ID: e.Incarnation, Life: e.Life, ContentType: e.ContentType, Mode: d.Mode,
			CreatedMs: e.CreatedMs, Ref: d.Ref(n, i.Key), Size: uint64(i.Size), Content: content, Named: i.named,
		}
	}
	return list
}
