package cold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"firn/internal/blob"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenSnapshot opens a blob whose size and CRC-32C the catalog knows. The reader
// yields exactly those bytes and io.EOF, or an error. The end of a blob is given out
// only when all of it is verified: whoever has announced its size cannot take a
// wrong one for whole. It must be closed. Errors: [stream.ErrColdUnavailable], with
// [ErrMissing] or [segment.ErrCorrupt] where that is the reason.
func (s *Store) OpenSnapshot(ctx context.Context, key string, size int64, crc uint32) (io.ReadCloser, error) {
	if size <= pieceBytes {
		content, err := s.small(ctx, key, size, crc)
		if err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(content)), nil
	}
	body := &pieces{ctx: ctx, blobs: s.blobs, key: key, size: size}
	r := &snapshotReader{store: s, key: key, body: body, left: size, sum: crc32.New(castagnoli), want: crc}
	info, err := body.fetch()
	switch {
	case errors.Is(err, blob.ErrRange), errors.Is(err, blob.ErrCorrupt):
		return nil, r.store.damaged(r.key, err)
	case err != nil:
		s.failed(key, err)
		return nil, unavailable("get snapshot", key, err)
	case info.Size != size:
		return nil, r.store.damaged(r.key, fmt.Errorf("store has %d bytes of %d", info.Size, size))
	}
	return r, nil
}

// pieceBytes is how much of a blob is fetched at a time.
const pieceBytes = 1 << 20

// pieces reads a blob by ranged GETs, so that a client who takes it slowly holds a
// little memory, and no call to the store.
type pieces struct {
	ctx   context.Context
	blobs blob.Store
	key   string
	size  int64
	next  int64 // where the next piece begins
	buf   []byte
}

func (p *pieces) fetch() (info blob.Info, err error) {
	n := min(p.size-p.next, pieceBytes)
	p.buf, info, err = blob.ReadAll(p.ctx, p.blobs, p.key, p.next, n)
	p.next += n
	return info, err
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.buf) == 0 {
		if p.next == p.size {
			return 0, io.EOF
		}
		if _, err := p.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.buf)
	p.buf = p.buf[n:]
	return n, nil
}

type snapshotReader struct {
	store *Store
	key   string
	body  io.Reader
	left  int64 // bytes that are still to come
	sum   hash.Hash32
	want  uint32
	err   error // sticky
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.body.Read(p)
	r.left -= int64(n)
	r.sum.Write(p[:n])
	switch {
	case r.left < 0, r.left > 0 && err == io.EOF:
		r.err = r.store.damaged(r.key, errors.New("blob has another size"))
	case r.left == 0 && r.sum.Sum32() != r.want:
		r.err = r.store.damaged(r.key, fmt.Errorf("blob has checksum %08x, want %08x", r.sum.Sum32(), r.want))
	case r.left == 0:
		// It is complete and verified: no failure matters any more.
		r.err = io.EOF
		return n, io.EOF
	case errors.Is(err, blob.ErrCorrupt), errors.Is(err, blob.ErrRange):
		r.err = r.store.damaged(r.key, err)
	case err != nil:
		r.err = unavailable("read snapshot", r.key, err)
		return n, r.err
	default:
		return n, nil
	}
	return 0, r.err
}

// Close has nothing to give back: no call to the store is under way between reads.
func (r *snapshotReader) Close() error { return nil }
