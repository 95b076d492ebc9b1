package cold

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// small returns a blob of one piece. It is kept beside the frames: clients that begin
// with the same snapshot, one after the other, cost one GET. Errors: those of
// [Store.OpenSnapshot].
func (s *Store) small(ctx context.Context, key string, size int64, crc uint32) ([]byte, error) {
	// What is asked for is a part of the name: another checksum is never met by bytes
	// that were verified by this one.
	k := frameKey{key, uint64(crc)<<32 | uint64(size)}
	s.mu.Lock()
	if content, ok := s.cache.get(k); ok {
		s.mu.Unlock()
		s.metrics.hits.Inc()
		return content, nil
	}
	f := s.flights[k]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.flights[k] = f
		s.metrics.misses.Inc()
		s.fetches.Go(func() { s.fetchSmall(k, size, crc) })
	} else {
		s.metrics.hits.Inc()
	}
	s.mu.Unlock()
	return f.wait(ctx)
}

func (s *Store) fetchSmall(k frameKey, size int64, crc uint32) {
	content, err := s.getSmall(k.object, size, crc)
	if err == nil {
		s.metrics.fetched.Add(float64(size))
		s.cache.add(k, content)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(k, content, err)
}

func (s *Store) getSmall(key string, size int64, crc uint32) ([]byte, error) {
	content, info, err := blob.ReadAll(s.stop, s.blobs, key, 0, size)
	switch {
	case errors.Is(err, blob.ErrRange), errors.Is(err, blob.ErrCorrupt):
		return nil, s.damaged(key, err)
	case err != nil:
		s.failed(key, err)
		return nil, unavailable("get snapshot", key, err)
	case info.Size != size:
		return nil, s.damaged(key, fmt.Errorf("store has %d bytes of %d", info.Size, size))
	}
	if sum := crc32.Checksum(content, castagnoli); sum != crc {
		return nil, s.damaged(key, fmt.Errorf("blob has checksum %08x, want %08x", sum, crc))
	}
	return content, nil
}

// damaged reports a blob that is not what was once put.
func (s *Store) damaged(key string, reason error) error {
	s.metrics.corrupt.Inc()
	s.suspect(key, "cold data is damaged", "err", reason)
	return fmt.Errorf("read snapshot %s: %w: %w: %w", key, stream.ErrColdUnavailable, segment.ErrCorrupt, reason)
}
