package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"

	"firn/internal/verify"
	"firn/pkg/stream"
	"firn/tier"
)

// observe asks the store about streams whose life may be over, so that model and store
// agree on what there is. Every other time all of them are expired at once.
func (w *world) observe(ctx context.Context, s Step) error {
	if s.Fill%2 == 1 {
		if err := w.hot.ExpireDue(ctx); err != nil {
			return err
		}
	}
	for _, n := range w.model.sorted() {
		is := w.model.names[n]
		if is == nil || is.deleted || !is.over(w.model.now) && !is.unsure(w.model.now) {
			continue
		}
		_, err := w.store.Head(ctx, n)
		switch {
		case err == nil && is.over(w.model.now):
			return fmt.Errorf("%s is there, its life ended %d ms ago", n, w.model.now-is.dead)
		case err == nil:
			w.model.edit(n).asleep = w.model.now + 1
		case errors.Is(err, stream.ErrNotFound), errors.Is(err, stream.ErrGone):
			w.model.remove(n)
		default:
			return err
		}
	}
	return nil
}

// look reads a page of some stream, from some place.
func (w *world) look(ctx context.Context, s Step) error {
	names := w.model.sorted()
	if len(names) == 0 {
		return nil
	}
	r := rand.New(rand.NewPCG(s.Fill, 79))
	n := names[r.IntN(len(names))]
	s = Step{Do: "look", Stream: n.String(), At: r.IntN(1001)}
	_, err := w.read(ctx, s, w.offset(n, s))
	return err
}

// check reads everything and looks at the structure of catalog and objects.
func (w *world) check(ctx context.Context, s Step) error {
	if err := w.observe(ctx, Step{}); err != nil {
		return err
	}
	if err := w.checkNames(ctx); err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(s.Fill, 80))
	for _, n := range w.model.sorted() {
		if err := w.checkStream(ctx, n, r); err != nil {
			return fmt.Errorf("check %s: %w", n, err)
		}
	}
	if err := w.checkCatalog(); err != nil {
		return err
	}
	return w.checkStructure(ctx)
}

func (w *world) checkNames(ctx context.Context) error {
	buckets, err := w.store.Buckets(ctx)
	if err != nil {
		return err
	}
	if len(buckets) != len(w.model.buckets) {
		return fmt.Errorf("buckets are %v, want %v", buckets, w.model.buckets)
	}
	for _, b := range buckets {
		if !w.model.buckets[b] {
			return fmt.Errorf("there is a bucket %s", b)
		}
		l, err := w.store.List(ctx, tier.ListRequest{Bucket: b, Limit: 1000})
		if err != nil {
			return err
		}
		want := make(map[stream.Name]bool)
		for n, is := range w.model.names {
			if n.Bucket == b && !is.deleted {
				want[n] = true
			}
		}
		for _, i := range l.Streams {
			if !want[i.Name] {
				return fmt.Errorf("%s is listed", i.Name)
			}
		}
		if len(l.Streams) != len(want) || l.Total != uint64(len(want)) {
			return fmt.Errorf("%d streams are listed in %s, and %d counted, want %d", len(l.Streams), b, l.Total, len(want))
		}
	}
	return nil
}

// checkStream reads all of a stream in pages: from its beginning, from some place, and
// as a follower does.
func (w *world) checkStream(ctx context.Context, n stream.Name, r *rand.Rand) error {
	s := Step{Do: "check", Stream: n.String()}
	is, want := w.model.find(n)
	info, err := w.store.Head(ctx, n)
	if !same(err, want) {
		return fmt.Errorf("it is %v, want %v", err, want)
	}
	if err != nil {
		return nil
	}
	if err := is.shown(info); err != nil {
		return err
	}
	for _, at := range []int{0, r.IntN(1001)} {
		for pos := is.place(at, 0); ; {
			next, err := w.read(ctx, s, is.offset(pos))
			if err != nil {
				return err
			}
			if pos = next; pos == is.tail() {
				break
			}
		}
	}
	if err := w.follow(ctx, is); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	if err := doBootstrap(ctx, w, s); err != nil {
		return err
	}
	return doSnapshot(ctx, w, s)
}

func (w *world) follow(ctx context.Context, is *life) error {
	f, err := w.store.Follow(ctx, is.name, stream.Beginning)
	if is.earliest > 0 {
		if want := error(&stream.TrimmedError{Earliest: is.offset(is.earliest)}); !same(err, want) {
			return fmt.Errorf("from the beginning: %v, want %v", err, want)
		}
		f, err = w.store.Follow(ctx, is.name, stream.At(is.offset(is.earliest)))
	}
	if err != nil {
		return err
	}
	defer f.Close()
	w.model.use(is.name, true)
	for pos := is.earliest; ; {
		p, err := f.Next(ctx)
		if err != nil {
			return err
		}
		err = is.page(p, pos)
		pos = p.Next.Position
		p.Release()
		if err != nil || pos == is.tail() {
			return err
		}
	}
}

// checkCatalog compares what only the catalog shows, and the catalog with itself.
func (w *world) checkCatalog() error {
	v := w.hot.View()
	defer v.Close()
	c, err := verify.Load(v.Reader(), verify.Options{})
	if err != nil {
		return err
	}
	for _, p := range c.Check() {
		return errors.New(p.String())
	}
	if len(c.Names) != len(w.model.names) {
		return fmt.Errorf("catalog has %d names, want %d", len(c.Names), len(w.model.names))
	}
	for n, is := range w.model.names {
		rec := c.Streams[is.id]
		switch {
		case c.Names[n] != is.id || rec == nil || rec.Deleted != is.deleted:
			return fmt.Errorf("%s is %s in the catalog, deleted %t, want %s, %t", n, c.Names[n], rec != nil && rec.Deleted, is.id, is.deleted)
		case is.deleted:
		case !maps.Equal(c.Producers[is.id], is.producers):
			return fmt.Errorf("%s has producers %v, want %v", n, c.Producers[is.id], is.producers)
		case (rec.Seq == nil) != (is.seq == nil) || rec.Seq != nil && *rec.Seq != *is.seq:
			return fmt.Errorf("%s has another Stream-Seq than was sent", n)
		}
	}
	return nil
}

// checkStructure looks at the objects as firn verify does.
func (w *world) checkStructure(ctx context.Context) error {
	report, err := verify.Run(ctx, verify.RunOptions{
		State: func() (verify.Reader, func()) {
			v := w.hot.View()
			return v.Reader(), v.Close
		},
		Remote: w.bucket.Store, Concurrency: 1,
	})
	switch {
	case err != nil:
		return err
	case report.Found > 0:
		return fmt.Errorf("verify finds %d problems, the first: %v", report.Found, report.Problems[0])
	case report.Unchecked > 0:
		return fmt.Errorf("verify gets no answer about %d objects", report.Unchecked)
	}
	for _, key := range report.UnknownKeys {
		if !w.strays[key] {
			return fmt.Errorf("the bucket has %d objects that nobody knows, such as %s", report.Unknown, key)
		}
	}
	return nil
}

// crashed decides, for a step that was not answered before the crash, whether it has
// happened.
func (w *world) crashed(ctx context.Context, s Step, before, after *model, last *lastMoment) error {
	n := nameOf(s.Stream)
	w.model = after
	if err := w.observe(ctx, Step{}); err != nil {
		return err
	}
	happened, err := w.agrees(ctx, s)
	if err != nil {
		return err
	}
	w.tell(fmt.Sprintf("not answered before a crash, happened: %t", happened))
	if !happened {
		w.model = before
		if err := w.observe(ctx, Step{}); err != nil {
			return err
		}
	}
	if seen := last.seen; seen != nil && s.Do != "delete" {
		is := w.model.names[n]
		if is == nil || is.id != seen.ID || is.tail() < seen.Tail {
			return fmt.Errorf("a reader was shown %d bytes of %s, which the crash has taken away", seen.Tail, n)
		}
	}
	return nil
}

// agrees reports whether the store shows of the stream or bucket of a step what the
// model says.
func (w *world) agrees(ctx context.Context, s Step) (bool, error) {
	if s.Bucket != "" {
		_, err := w.store.Bucket(ctx, s.Bucket)
		return (err == nil) == w.model.buckets[s.Bucket], nil
	}
	n := nameOf(s.Stream)
	info, err := w.store.Head(ctx, n)
	is := w.model.names[n]
	switch {
	case err == nil:
		return is != nil && !is.deleted && is.shown(info) == nil && is.tag(info), nil
	case errors.Is(err, stream.ErrNotFound), errors.Is(err, stream.ErrBucketNotFound):
		return is == nil, nil
	case errors.Is(err, stream.ErrGone):
		return is != nil && is.deleted, nil
	}
	return false, err
}

// tag compares the snapshot that is shown, as far as it is told.
func (s *life) tag(i tier.Info) bool {
	return i.Snapshot == nil || bytes.Contains([]byte(i.Snapshot.Tag), fmt.Appendf(nil, "-%08x-", checksum(s.snapshot.blob)))
}
