package tier

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// Bootstrap takes a stream's snapshot and the updates after it, as far as they
// are hot and fit, under one view, and renews its TTL (X§3, S). Updates never skip
// or repeat a byte: where they stop, Next says. Errors: as for Head;
// [stream.ErrColdUnavailable] when the snapshot cannot be fetched.
func (s *Store) Bootstrap(ctx context.Context, name stream.Name) (*Bootstrap, error) {
	rec, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	// The memory of all bootstraps together is bounded. Half of a JSON stream's
	// stored bytes may be LFs, which do not count as part bodies. A stream that has
	// outgrown its share meanwhile is read again with the largest one.
	most := 2 * int64(s.opts.BootstrapBytes)
	reserve := min(int64(rec.Tail-rec.Earliest), most)
	for {
		b, err := s.reserved(ctx, rec.ID, reserve)
		if !errors.Is(err, errOutgrown) {
			return b, err
		}
		reserve = most
	}
}

func (s *Store) reserved(ctx context.Context, id stream.ID, reserve int64) (*Bootstrap, error) {
	if err := s.bootstrap.Acquire(ctx, reserve); err != nil {
		return nil, err
	}
	b, err := s.takeBootstrap(ctx, id, int(reserve))
	if err != nil {
		s.bootstrap.Release(reserve)
		return nil, err
	}
	release := b.release
	b.release = func() {
		release()
		s.bootstrap.Release(reserve)
	}
	return b, nil
}

// takeBootstrap reads at most room stored bytes.
func (s *Store) takeBootstrap(ctx context.Context, id stream.ID, room int) (*Bootstrap, error) {
	buf := s.getBuffer()
	b := &Bootstrap{release: func() { s.putBuffer(buf) }}
	rec, err := s.updates(id, b, buf, room)
	if err != nil {
		b.Close()
		return nil, err
	}
	s.hot.Renew(rec)
	if rec.Snapshot != nil {
		if b.Snapshot, err = s.openSnapshot(ctx, rec); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// updates fills in everything but the snapshot, from one view.
func (s *Store) updates(id stream.ID, b *Bootstrap, buf *[]byte, room int) (*hot.Record, error) {
	v := s.hot.View()
	defer v.Close()
	rec, err := v.Incarnation(id)
	switch {
	case err != nil:
		return nil, err
	case rec.Deleted:
		return nil, stream.ErrGone
	}
	start := rec.Earliest
	b.Info, b.Next = info(rec), rec.Offset(start)
	list, err := extents(v, rec, start)
	if err != nil {
		return nil, err
	}
	if s.opts.fault == FaultColdGap {
		list = slices.DeleteFunc(list, func(e extent) bool { return e.cold })
	}
	for _, e := range list {
		if e.cold {
			b.Partial = "cold"
			return rec, nil
		}
	}
	if b.Partial, err = s.collect(v, rec.Mode, list, buf, room); err != nil {
		return nil, err
	}
	b.Updates = *buf
	b.Next.Position += uint64(len(b.Updates))
	b.UpToDate = b.Partial == ""
	b.Closed = b.UpToDate && rec.Closed
	return rec, nil
}

// collect reads hot extents while their part bodies fit. It returns "size" when
// they do not: then buf ends at the last message that does, and holds nothing of a
// stream without messages.
func (s *Store) collect(v *hot.View, mode stream.Mode, list []extent, buf *[]byte, room int) (partial string, err error) {
	limit, bodies := s.opts.BootstrapBytes, 0
	take := func(_ uint64, payload []byte) error {
		bodies += len(payload)
		if mode == stream.JSON {
			bodies -= bytes.Count(payload, []byte{'\n'})
		}
		switch {
		case bodies > limit:
			// Messages at the head of this value may still fit.
			if mode == stream.JSON {
				*buf = append(*buf, payload...)
			}
			return errFull
		case len(*buf)+len(payload) > room:
			return errOutgrown
		}
		*buf = append(*buf, payload...)
		return nil
	}
	for _, e := range list {
		err := v.Values(e.owner.ID, e.from, e.to, take)
		if err == errFull {
			*buf = fitting(*buf, mode, limit)
			return "size", nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// fitting cuts stored bytes at the end of the last message with which all part
// bodies, that is messages without their LF, are at most limit bytes.
func fitting(stored []byte, mode stream.Mode, limit int) []byte {
	if mode != stream.JSON {
		return stored[:0]
	}
	end, bodies := 0, 0
	for {
		i := bytes.IndexByte(stored[end:], '\n')
		if i < 0 || bodies+i > limit {
			return stored[:end]
		}
		bodies += i
		end += i + 1
	}
}
