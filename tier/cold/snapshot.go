package cold

import (
	"context"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// OpenSnapshot opens a blob whose size and CRC-32C the catalog knows. The reader
// yields exactly those bytes and io.EOF, or an error: what differs is noticed
// before the end is reported. It must be closed.
func (s *Store) OpenSnapshot(ctx context.Context, key string, size int64, crc uint32) (io.ReadCloser, error) {
	body, info, err := s.blobs.Get(ctx, key, 0, -1)
	if err != nil {
		s.failed(key, err)
		return nil, unavailable("get snapshot", key, err)
	}
	if info.Size != size {
		body.Close()
		s.metrics.corrupt.Inc()
		return nil, fmt.Errorf("get snapshot %s: %w: store has %d bytes of %d", key, stream.ErrColdUnavailable, info.Size, size)
	}
	return &snapshotReader{store: s, key: key, body: body, sum: crc32.New(castagnoli), want: crc}, nil
}

type snapshotReader struct {
	store *Store
	key   string
	body  io.ReadCloser
	sum   hash.Hash32
	want  uint32
}

func (r *snapshotReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.sum.Write(p[:n])
	switch {
	case err == io.EOF && r.sum.Sum32() != r.want:
		r.store.metrics.corrupt.Inc()
		return n, fmt.Errorf("read snapshot %s: %w: %w", r.key, stream.ErrColdUnavailable, segment.ErrCorrupt)
	case err != nil && err != io.EOF:
		return n, unavailable("read snapshot", r.key, err)
	}
	return n, err
}

func (r *snapshotReader) Close() error { return r.body.Close() }
