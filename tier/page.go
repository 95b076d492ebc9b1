package tier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// maxPooled is the largest page buffer that is kept for the next page.
const maxPooled = 16 << 20

// Read returns one page of a stream and renews its TTL (B§5.6). Errors: as for
// Head; those of [stream.Start.Position]; a [*stream.TrimmedError];
// [stream.ErrOffsetNotBoundary]; [stream.ErrColdUnavailable].
func (s *Store) Read(ctx context.Context, name stream.Name, start stream.Start) (Page, error) {
	v, rec, pos, err := s.enter(ctx, name, start)
	if err != nil {
		return Page{}, err
	}
	return s.page(ctx, v, rec, pos)
}

// enter finds where a read begins, and renews the TTL. The view that it returns is
// to be closed.
func (s *Store) enter(ctx context.Context, name stream.Name, start stream.Start) (*hot.View, *hot.Record, uint64, error) {
	v := s.hot.View()
	rec, pos, err := s.locate(ctx, v, name, start)
	if err == nil && !certain(rec, pos) {
		v.Close()
		if err := s.boundary(ctx, rec.ID, pos); err != nil {
			return nil, nil, 0, err
		}
		v = s.hot.View()
		rec, err = s.again(v, rec.ID, pos)
	}
	if err != nil {
		v.Close()
		return nil, nil, 0, err
	}
	s.hot.Renew(rec)
	return v, rec, pos, nil
}

func (s *Store) locate(ctx context.Context, v *hot.View, name stream.Name, start stream.Start) (*hot.Record, uint64, error) {
	rec, err := s.visible(ctx, v, name)
	if err != nil {
		return nil, 0, err
	}
	pos, err := rec.Lives().Start(start, rec.Tail)
	if err != nil {
		return nil, 0, err
	}
	if pos < rec.Earliest {
		return nil, 0, &stream.TrimmedError{Earliest: rec.Offset(rec.Earliest)}
	}
	return rec, pos, nil
}

// again looks an incarnation up that was at a readable position before.
func (s *Store) again(v *hot.View, id stream.ID, pos uint64) (*hot.Record, error) {
	rec, err := v.Incarnation(id)
	switch {
	case err != nil:
		return nil, err
	case rec.Deleted:
		return nil, stream.ErrGone
	case s.hot.Expired(rec):
		return nil, stream.ErrNotFound
	case pos < rec.Earliest:
		return nil, &stream.TrimmedError{Earliest: rec.Offset(rec.Earliest)}
	}
	return rec, nil
}

// page makes the page at a position. It closes the view. An object that is gone
// may have been replaced or let go of since the view was taken: the record is
// looked at once more.
func (s *Store) page(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64) (Page, error) {
	p, err := s.fill(ctx, v, rec, pos, s.opts.ReadBytes)
	if !errors.Is(err, cold.ErrMissing) {
		return p, err
	}
	return s.refill(ctx, rec.ID, pos, s.opts.ReadBytes)
}

// refill is fill with a record and a view of now.
func (s *Store) refill(ctx context.Context, id stream.ID, pos uint64, want int) (Page, error) {
	v := s.hot.View()
	rec, err := s.again(v, id, pos)
	if err != nil {
		v.Close()
		return Page{}, err
	}
	return s.fill(ctx, v, rec, pos, want)
}

// fill makes a page of about want bytes. It closes the view before it asks the
// object store for anything. A page of a JSON stream ends with its last whole
// message; if even the first one is longer than a page, the page grows for it alone.
func (s *Store) fill(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64, want int) (Page, error) {
	p := Page{From: rec.Offset(pos), Next: rec.Offset(pos), Info: info(rec)}
	if pos == rec.Tail {
		v.Close()
		return p.end(rec), nil
	}
	g := gathering{store: s, buf: s.getBuffer()}
	*g.buf = append(*g.buf, 0) // room for what JSONArray begins with
	err := g.take(v, rec, pos, want)
	v.Close()
	if err == nil {
		err = g.join(ctx)
	}
	if err != nil {
		s.putBuffer(g.buf)
		return Page{}, err
	}
	if rec.Mode == stream.JSON {
		stored := (*g.buf)[1:]
		end := messagesEnd(stored, s.opts.ReadBytes)
		if end == 0 {
			reached := pos + uint64(len(stored))
			s.putBuffer(g.buf)
			if reached == rec.Tail {
				return Page{}, fmt.Errorf("%w: %s ends inside a message", hot.ErrDamaged, rec.ID)
			}
			return s.refill(ctx, rec.ID, pos, 2*want)
		}
		*g.buf = (*g.buf)[:1+end]
	}
	p.Tier = g.tier()
	p.room, p.Data, p.release = *g.buf, (*g.buf)[1:], func() { s.putBuffer(g.buf) }
	p.Next.Position += uint64(len(p.Data))
	return p.end(rec), nil
}

// messagesEnd returns the end of the last message within limit bytes, or of the first
// one if that is longer; 0 if stored does not hold all of it.
func messagesEnd(stored []byte, limit int) int {
	if i := bytes.LastIndexByte(stored[:min(limit, len(stored))], '\n'); i >= 0 {
		return i + 1
	}
	return bytes.IndexByte(stored, '\n') + 1
}

// end says what the page's end means.
func (p Page) end(rec *hot.Record) Page {
	p.UpToDate = p.Next.Position == rec.Tail
	p.Closed = p.UpToDate && rec.Closed
	return p
}

// gathering collects a page: under the view what is hot is copied and what is cold
// is looked up; without it the cold bytes are fetched and all is put in order.
type gathering struct {
	store *Store
	buf   *[]byte // one byte of room, then the page
	// later are the pieces from the first cold one on. The hot bytes before it are
	// in buf.
	later []piece
}

// piece is a range of a segment, or hot bytes.
type piece struct {
	ref      segment.Ref
	from, to uint64
	hot      []byte
}

func (g *gathering) take(v *hot.View, rec *hot.Record, pos uint64, want int) error {
	list, err := extents(v, rec, pos)
	if err != nil {
		return err
	}
	left := uint64(want)
	for _, e := range list {
		to := min(e.to, e.from+left)
		left -= to - e.from
		switch {
		case e.cold:
			err = g.takeCold(v, e.owner.ID, e.from, to)
		case len(g.later) == 0:
			*g.buf, err = v.Data(*g.buf, e.owner.ID, e.from, to)
		default:
			p := piece{}
			p.hot, err = v.Data(nil, e.owner.ID, e.from, to)
			g.later = append(g.later, p)
		}
		if err != nil || left == 0 {
			return err
		}
	}
	return nil
}

func (g *gathering) takeCold(v *hot.View, id stream.ID, from, to uint64) error {
	for from < to {
		ref, err := v.Segment(id, from)
		if err != nil {
			return err
		}
		end := min(ref.To, to)
		g.later = append(g.later, piece{ref: ref, from: from, to: end})
		from = end
	}
	return nil
}

// join waits for the cold bytes.
func (g *gathering) join(ctx context.Context) error {
	return patiently(ctx, g.fetch)
}

// coldPatience is how long a reader waits for the object store. What is fetched for it
// goes on when it has been told to come again.
const coldPatience = 20 * time.Second

// patiently bounds a wait for the object store. Errors: [stream.ErrColdUnavailable] when
// it has taken too long; those of wait.
func patiently(ctx context.Context, wait func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, coldPatience)
	defer cancel()
	err := wait(bounded)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer in %v", stream.ErrColdUnavailable, coldPatience)
	}
	return err
}

func (g *gathering) fetch(ctx context.Context) (err error) {
	for i, p := range g.later {
		if g.store.opts.fault == FaultEdge && i > 0 && p.hot != nil {
			p.hot = p.hot[1:]
		}
		if p.hot != nil {
			*g.buf = append(*g.buf, p.hot...)
			continue
		}
		if *g.buf, err = g.store.cold(p.ref.Object).Read(ctx, *g.buf, p.ref, p.from, p.to); err != nil {
			return err
		}
	}
	return nil
}

// tier is Cold as soon as one byte is.
func (g *gathering) tier() Tier {
	if len(g.later) > 0 {
		return Cold
	}
	return Hot
}

func (s *Store) getBuffer() *[]byte { return s.buffers.Get().(*[]byte) }

func (s *Store) putBuffer(b *[]byte) {
	if cap(*b) > maxPooled {
		return
	}
	*b = (*b)[:0]
	s.buffers.Put(b)
}
