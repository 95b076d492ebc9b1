package cold

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenSnapshot opens a blob whose size and CRC-32C the catalog knows. The reader
// yields exactly those bytes and io.EOF, or an error. The end of a blob is given out
// only when all of it is verified: whoever has announced its size cannot take a
// wrong one for whole. It must be closed. Errors: [stream.ErrColdUnavailable], with
// [ErrMissing] or [segment.ErrCorrupt] where that is the reason.
func (s *Store) OpenSnapshot(ctx context.Context, key string, size int64, crc uint32) (io.ReadCloser, error) {
	body, info, err := s.blobs.Get(ctx, key, 0, -1)
	if err != nil {
		s.failed(key, err)
		return nil, unavailable("get snapshot", key, err)
	}
	r := &snapshotReader{store: s, key: key, body: body, left: size, sum: crc32.New(castagnoli), want: crc}
	if info.Size != size {
		body.Close()
		return nil, r.damaged(fmt.Errorf("store has %d bytes of %d", info.Size, size))
	}
	return r, nil
}

type snapshotReader struct {
	store *Store
	key   string
	body  io.ReadCloser
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
		r.err = r.damaged(errors.New("blob has another size"))
	case r.left == 0 && r.sum.Sum32() != r.want:
		r.err = r.damaged(fmt.Errorf("blob has checksum %08x, want %08x", r.sum.Sum32(), r.want))
	case r.left == 0:
		// It is complete and verified: no failure matters any more.
		r.err = io.EOF
		return n, io.EOF
	case errors.Is(err, blob.ErrCorrupt):
		r.err = r.damaged(err)
	case err != nil:
		r.err = unavailable("read snapshot", r.key, err)
		return n, r.err
	default:
		return n, nil
	}
	return 0, r.err
}

func (r *snapshotReader) Close() error { return r.body.Close() }

// damaged reports a blob that is not what was once put.
func (r *snapshotReader) damaged(reason error) error {
	r.store.metrics.corrupt.Inc()
	r.store.log.Error("cold data is damaged", "key", r.key, "err", reason)
	return fmt.Errorf("read snapshot %s: %w: %w: %w", r.key, stream.ErrColdUnavailable, segment.ErrCorrupt, reason)
}
