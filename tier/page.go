package tier

import (
	"bytes"
	"context"
	"errors"

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
	v := s.hot.View()
	rec, pos, err := s.enter(ctx, v, name, start)
	if err != nil {
		v.Close()
		return Page{}, err
	}
	return s.page(ctx, v, rec, pos)
}

// enter finds where a read begins, and renews the TTL.
func (s *Store) enter(ctx context.Context, v *hot.View, name stream.Name, start stream.Start) (*hot.Record, uint64, error) {
	rec, err := s.visible(ctx, v, name)
	if err != nil {
		return nil, 0, err
	}
	pos, err := start.Position(rec.Life, rec.Tail)
	if err != nil {
		return nil, 0, err
	}
	if pos < rec.Earliest {
		return nil, 0, &stream.TrimmedError{Earliest: rec.Offset(rec.Earliest)}
	}
	if err := s.boundary(ctx, v, rec, pos); err != nil {
		return nil, 0, err
	}
	s.hot.Renew(rec)
	return rec, pos, nil
}

// page makes the page at a position. It closes the view. An object that is gone
// may have been replaced or let go of since the view was taken: the record is
// looked at once more.
func (s *Store) page(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64) (Page, error) {
	p, err := s.fill(ctx, v, rec, pos)
	if !errors.Is(err, cold.ErrMissing) {
		return p, err
	}
	v = s.hot.View()
	again, ierr := v.Incarnation(rec.ID)
	switch {
	case ierr != nil:
		v.Close()
		return Page{}, ierr
	case again.Deleted:
		v.Close()
		return Page{}, stream.ErrGone
	case pos < again.Earliest:
		v.Close()
		return Page{}, &stream.TrimmedError{Earliest: again.Offset(again.Earliest)}
	}
	return s.fill(ctx, v, again, pos)
}

// fill reads a page's bytes: all from the tier that has the first one. It closes
// the view, before it asks the object store for anything.
func (s *Store) fill(ctx context.Context, v *hot.View, rec *hot.Record, pos uint64) (Page, error) {
	p := Page{From: rec.Offset(pos), Next: rec.Offset(pos), Info: info(rec)}
	if pos == rec.Tail {
		v.Close()
		return p.end(rec), nil
	}
	list, err := extents(v, rec, pos)
	if err != nil {
		v.Close()
		return Page{}, err
	}
	n := 1
	for n < len(list) && list[n].cold == list[0].cold {
		n++
	}
	r := &reader{store: s, view: v, mode: rec.Mode, want: s.opts.ReadBytes}
	if list[0].cold {
		p.Tier = Cold
		err = r.cold(ctx, list[:n])
	} else {
		p.Tier = Hot
		err = r.hot(list[:n])
	}
	if err != nil {
		return Page{}, err
	}
	p.Data, p.release = *r.buf, func() { s.putBuffer(r.buf) }
	p.Next.Position += uint64(len(p.Data))
	return p.end(rec), nil
}

// end says what the page's end means.
func (p Page) end(rec *hot.Record) Page {
	p.UpToDate = p.Next.Position == rec.Tail
	p.Closed = p.UpToDate && rec.Closed
	return p
}

// reader collects the bytes of extents of one tier until a page is full.
type reader struct {
	store *Store
	view  *hot.View
	mode  stream.Mode
	want  int
	buf   *[]byte
}

func (r *reader) hot(list []extent) error {
	defer r.view.Close()
	r.buf = r.store.getBuffer()
	for i, e := range list {
		for pos := e.from; pos < e.to; {
			to := min(e.to, pos+uint64(r.want-len(*r.buf)))
			data, err := r.view.Data(*r.buf, e.owner.ID, pos, to)
			*r.buf = data
			if err != nil {
				r.store.putBuffer(r.buf)
				return err
			}
			if pos = to; r.full(pos == e.to && i == len(list)-1) {
				return nil
			}
		}
	}
	return nil
}

func (r *reader) cold(ctx context.Context, list []extent) error {
	type part struct {
		ref      segment.Ref
		from, to uint64
	}
	// How many segments a page takes is not known before their messages are seen,
	// so a few more than its size asks for are looked up under the view.
	var parts []part
	size := uint64(0)
	for _, e := range list {
		for pos := e.from; pos < e.to && size < 2*uint64(r.want); {
			ref, err := r.view.Segment(e.owner.ID, pos)
			if err != nil {
				r.view.Close()
				return err
			}
			to := min(ref.To, e.to)
			parts = append(parts, part{ref, pos, to})
			size += to - pos
			pos = to
		}
	}
	r.view.Close()
	r.buf = r.store.getBuffer()
	for i, p := range parts {
		for pos := p.from; pos < p.to; {
			to := min(p.to, pos+uint64(r.want-len(*r.buf)))
			data, err := r.store.cold(p.ref.Object).Read(ctx, *r.buf, p.ref, pos, to)
			*r.buf = data
			if err != nil {
				r.store.putBuffer(r.buf)
				return err
			}
			if pos = to; r.full(pos == p.to && i == len(parts)-1) {
				return nil
			}
		}
	}
	return nil
}

// full reports whether the page is done, and cuts it at the end of its last whole
// message. If even the first one is longer than a page, the page grows for it.
func (r *reader) full(last bool) bool {
	if last {
		return true
	}
	if len(*r.buf) < r.want {
		return false
	}
	if r.mode != stream.JSON {
		return true
	}
	if i := bytes.LastIndexByte(*r.buf, '\n'); i >= 0 {
		*r.buf = (*r.buf)[:i+1]
		return true
	}
	r.want *= 2
	return false
}

func (s *Store) getBuffer() *[]byte { return s.buffers.Get().(*[]byte) }

func (s *Store) putBuffer(b *[]byte) {
	if cap(*b) > maxPooled {
		return
	}
	*b = (*b)[:0]
	s.buffers.Put(b)
}
