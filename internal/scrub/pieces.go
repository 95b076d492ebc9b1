package scrub

import (
	"context"
	"fmt"
	"io"

	"firn/internal/blob"
)

// pieceBytes is how much of an object one GET fetches at most. Two pieces are held, the
// last one and the one that is read.
const pieceBytes = 8 << 20

// pieces reads an object of a known size in order, its end first, by few GETs, at the
// rate. Pieces are counted from the end, where the descriptor is: the first one may be
// short.
type pieces struct {
	ctx   context.Context
	s     *Scrubber
	blobs blob.Store
	key   string
	size  int64

	last, now piece
}

type piece struct {
	from int64
	data []byte
}

func (p piece) has(off int64) bool { return off >= p.from && off < p.from+int64(len(p.data)) }

// ReadAt implements [io.ReaderAt]. Errors: those of the store; [blob.ErrCorrupt] when
// the object has another size.
func (p *pieces) ReadAt(b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		if off+int64(n) >= p.size {
			return n, io.EOF
		}
		c, err := p.at(off + int64(n))
		if err != nil {
			return n, err
		}
		n += copy(b[n:], c.data[off+int64(n)-c.from:])
	}
	return n, nil
}

// at returns the piece with an offset.
func (p *pieces) at(off int64) (piece, error) {
	for _, c := range [...]piece{p.last, p.now} {
		if c.has(off) {
			return c, nil
		}
	}
	behind := (p.size - 1 - off) / pieceBytes // pieces
	to := p.size - behind*pieceBytes
	c := piece{from: max(to-pieceBytes, 0)}
	keep := &p.now
	if behind == 0 {
		keep = &p.last
	}
	keep.data = nil // before another one is there
	var err error
	if c.data, err = p.fetch(c.from, to-c.from); err != nil {
		return piece{}, err
	}
	*keep = c
	return c, nil
}

// fetch makes one GET, when the rate allows it.
func (p *pieces) fetch(off, n int64) ([]byte, error) {
	s := p.s
	now := s.opts.Now()
	if err := s.opts.Wait(p.ctx, s.limit.ReserveN(now, int(n)).DelayFrom(now)); err != nil {
		return nil, err
	}
	data, info, err := blob.ReadAll(p.ctx, p.blobs, p.key, off, n)
	if err != nil {
		return nil, err
	}
	s.metrics.bytes.Add(float64(len(data)))
	if info.Size != p.size {
		return nil, fmt.Errorf("%w: it has %d bytes, the catalog says %d", blob.ErrCorrupt, info.Size, p.size)
	}
	return data, nil
}

// each calls fn with all bytes, in order.
func (p *pieces) each(fn func([]byte)) error {
	if p.size == 0 {
		_, err := p.fetch(0, 0)
		return err
	}
	for off := int64(0); off < p.size; {
		c, err := p.at(off)
		if err != nil {
			return err
		}
		fn(c.data)
		off += int64(len(c.data))
	}
	return nil
}
