package scrub

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	// attempts is how often an object has to be wrong: a bad transfer is not a bad
	// object.
	attempts = 3
	// attemptPause is between the first two of them, and doubles.
	attemptPause = 2 * time.Second
)

// verdict is what became of a look at an object.
type verdict byte

const (
	whole verdict = iota + 1
	damaged
	gone // the catalog does not name it any more
	unanswered
)

// String is the name in metrics.
func (v verdict) String() string {
	return [...]string{whole: "whole", damaged: "damaged", gone: "gone", unanswered: "unanswered"}[v]
}

// finding is a verdict and its reason.
type finding struct {
	verdict verdict
	damage  hot.Damage // of what is damaged
	reason  error
}

var (
	errGone    = errors.New("the catalog does not name the object any more")
	errDiffers = errors.New("object is not the one that the catalog means")
	errNoStore = errors.New("the store of the object is not configured")
)

// examine reads an object, again if it is wrong, so many times at most.
func (s *Scrubber) examine(ctx context.Context, key string, times int) finding {
	var f finding
	for i := range times {
		if i > 0 {
			if err := s.opts.Wait(ctx, attemptPause<<(i-1)); err != nil {
				return finding{unanswered, 0, err}
			}
		}
		was := f
		f = s.judge(key, s.read(ctx, key))
		if f.verdict == whole && was.verdict == damaged {
			s.metrics.badReads.Inc()
			s.log.Warn("object was read wrong and is whole", "key", key, "err", was.reason)
		}
		if f.verdict != damaged {
			break
		}
	}
	return f
}

// judge says what an attempt to read an object means.
func (s *Scrubber) judge(key string, err error) finding {
	f := finding{verdict: damaged, reason: err}
	switch {
	case err == nil:
		return finding{verdict: whole}
	case errors.Is(err, errGone):
		return finding{verdict: gone}
	case errors.Is(err, blob.ErrNotFound):
		f.damage = hot.Missing
	case errors.Is(err, errDiffers):
		f.damage = hot.Differs
	case errors.Is(err, segment.ErrCorrupt), errors.Is(err, segment.ErrVersion), errors.Is(err, blob.ErrCorrupt), errors.Is(err, blob.ErrRange):
		f.damage = hot.Corrupt
	default:
		return finding{unanswered, 0, err}
	}
	// It may have been removed while it was read.
	v := s.hot.View()
	defer v.Close()
	switch _, live, err := v.LiveObject(key); {
	case err != nil:
		return finding{unanswered, 0, err}
	case !live:
		return finding{verdict: gone}
	}
	return f
}

// read reads an object once. Nil means that it is what the catalog says.
func (s *Scrubber) read(ctx context.Context, key string) error {
	v := s.hot.View()
	o, live, err := v.LiveObject(key)
	v.Close()
	if err != nil {
		return err
	}
	if !live {
		return errGone
	}
	p := &pieces{ctx: ctx, s: s, blobs: s.opts.Remote, key: key, size: int64(o.Size)}
	if cold.IsLocal(key) {
		p.blobs = s.opts.Local
	}
	if p.blobs == nil {
		return errNoStore
	}
	if cold.IsSnapshot(key) {
		return s.readSnapshot(p)
	}
	d, err := s.decoder.Verify(p, p.size)
	if err != nil {
		return err
	}
	return s.compare(key, d)
}

// compare holds what an object says of itself against what the catalog has of it.
func (s *Scrubber) compare(key string, d *segment.Descriptor) error {
	v := s.hot.View()
	defer v.Close()
	o, live, err := v.LiveObject(key)
	if err != nil {
		return err
	}
	if !live {
		return errGone
	}
	if d.Store != s.hot.ID() {
		return fmt.Errorf("%w: it is of store %s", errDiffers, d.Store)
	}
	named := uint64(0)
	for i, e := range d.Entries {
		refs, err := v.Segments(e.Incarnation, e.From, e.From+1, 1)
		if err != nil {
			return err
		}
		if len(refs) == 0 || refs[0].Object != key || refs[0].From != e.From {
			continue // it was let go of, or is in another object
		}
		if !cold.Same(d.Ref(i, key), refs[0]) {
			return fmt.Errorf("%w: it has bytes [%d,%d) of stream %s elsewhere", errDiffers, e.From, e.To, e.Incarnation)
		}
		named += e.To - e.From
	}
	if named != o.Named {
		return fmt.Errorf("%w: it has %d bytes of the %d that are named of it", errDiffers, named, o.Named)
	}
	return nil
}

func (s *Scrubber) readSnapshot(p *pieces) error {
	v := s.hot.View()
	n, err := snapshotOf(v, p.key)
	v.Close()
	if err != nil {
		return err
	}
	if n.Size != p.size {
		return fmt.Errorf("%w: the snapshot has %d bytes, the object %d", errDiffers, n.Size, p.size)
	}
	sum := crc32.New(castagnoli())
	if err := p.each(func(b []byte) { sum.Write(b) }); err != nil {
		return err
	}
	if sum.Sum32() != n.CRC {
		return fmt.Errorf("%w: it has checksum %08x, want %08x", segment.ErrCorrupt, sum.Sum32(), n.CRC)
	}
	return nil
}

// snapshotOf finds what the catalog has of a snapshot that was live a moment ago: with
// the stream that it was published to, or a fork that has it from there.
func snapshotOf(v *hot.View, key string) (*hot.Snapshot, error) {
	if _, live, err := v.LiveObject(key); err != nil || !live {
		return nil, errOr(err, errGone)
	}
	id, ok := cold.StreamOf(key)
	for ids := []stream.ID{id}; ok && len(ids) > 0; ids = ids[1:] {
		rec, err := v.Peek(ids[0])
		if errors.Is(err, stream.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Snapshot != nil && rec.Snapshot.Object == key {
			return rec.Snapshot, nil
		}
		forks, err := v.Forks(ids[0], int(rec.Forks))
		if err != nil {
			return nil, err
		}
		ids = append(ids, forks...)
	}
	return nil, fmt.Errorf("%w: no stream shows the snapshot", errDiffers)
}

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
