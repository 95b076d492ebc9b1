package cold

import (
	"context"
	"fmt"

	"firn/pkg/segment"
)

// Read appends to dst the stored bytes [from, to) of a segment. Errors:
// [stream.ErrColdUnavailable], with [ErrMissing] or [segment.ErrCorrupt] where that
// is the reason; ctx's error. With an error dst holds the bytes before it.
func (s *Store) Read(ctx context.Context, dst []byte, ref segment.Ref, from, to uint64) ([]byte, error) {
	span, err := ref.Span(from, to)
	if err != nil {
		return dst, fmt.Errorf("read %s: %w", ref.Object, err)
	}
	// A few frames more than a GET fetches: their content must not all be held at
	// once when a range is long.
	for parts := span.Parts; len(parts) > 0; {
		n := s.batch(parts)
		if dst, err = s.readParts(ctx, dst, ref.Object, parts[:n]); err != nil {
			return dst, err
		}
		parts = parts[n:]
	}
	s.readOn(ref, from, to)
	return dst, nil
}

// batch is how many of the parts one GET may fetch: at least one.
func (s *Store) batch(parts []segment.Part) int {
	size := uint64(0)
	for i, p := range parts {
		if size += uint64(p.Length); size > s.opts.FetchBytes && i > 0 {
			return i
		}
	}
	return len(parts)
}

func (s *Store) readParts(ctx context.Context, dst []byte, object string, parts []segment.Part) ([]byte, error) {
	for i, f := range s.request(object, parts) {
		content, err := f.wait(ctx)
		if err != nil {
			return dst, err
		}
		dst = append(dst, parts[i].Cut(content)...)
	}
	return dst, nil
}

// readOn fetches ahead when a reader goes on where one has stopped before. It only
// fills the cache, and never waits.
func (s *Store) readOn(ref segment.Ref, from, to uint64) {
	if s.opts.ReadAhead < 0 {
		return
	}
	s.mu.Lock()
	last, known := s.ends[ref.Object]
	if to < ref.To {
		if len(s.ends) >= maxEnds {
			clear(s.ends)
		}
		s.ends[ref.Object] = to
	} else {
		delete(s.ends, ref.Object)
	}
	s.mu.Unlock()
	if !known || last != from || to == ref.To {
		return
	}
	select {
	case s.ahead <- struct{}{}:
	default:
		return
	}
	span, err := ref.Span(to, min(ref.To, to+uint64(s.opts.ReadAhead)))
	if err != nil {
		<-s.ahead
		return
	}
	flights := s.request(ref.Object, span.Parts[:s.batch(span.Parts)])
	s.metrics.prefetches.Inc()
	s.fetches.Go(func() {
		defer func() { <-s.ahead }()
		for _, f := range flights {
			if _, err := f.wait(s.stop); err != nil {
				return
			}
		}
	})
}

// maxEnds bounds how many readers' positions are remembered.
const maxEnds = 4096

// flight is one frame on its way: many readers may wait for it.
type flight struct {
	done    chan struct{}
	content []byte
	err     error
}

func (f *flight) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-f.done:
		return f.content, f.err
	default:
	}
	select {
	case <-f.done:
		return f.content, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var landed = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

// request returns a flight for each of the parts: cached, on its way already, or
// begun now. What is begun is fetched by one GET a contiguous run, and goes on
// when its readers leave: who tries again finds it in the cache.
func (s *Store) request(object string, parts []segment.Part) []*flight {
	flights := make([]*flight, len(parts))
	var runs [][]segment.Part
	began := false
	s.mu.Lock()
	for i, p := range parts {
		k := frameKey{object, p.Offset}
		if content, ok := s.cache.get(k); ok {
			flights[i] = &flight{done: landed, content: content}
			began = false
			s.metrics.hits.Inc()
			continue
		}
		if f := s.flights[k]; f != nil {
			flights[i] = f
			began = false
			s.metrics.hits.Inc()
			continue
		}
		flights[i] = &flight{done: make(chan struct{})}
		s.flights[k] = flights[i]
		s.metrics.misses.Inc()
		if !began {
			runs = append(runs, nil)
		}
		began = true
		runs[len(runs)-1] = append(runs[len(runs)-1], p)
	}
	s.mu.Unlock()
	for _, run := range runs {
		s.fetches.Go(func() { s.fetch(object, run) })
	}
	return flights
}

// land ends a flight with its content, which is cached.
func (s *Store) land(k frameKey, content []byte) {
	s.cache.add(k, content)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(k, content, nil)
}

// fail ends flights with an error, which is not cached. All end at once: a reader
// that tries again must not meet the rest of the fetch that failed.
func (s *Store) fail(object string, parts []segment.Part, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		s.end(frameKey{object, p.Offset}, nil, err)
	}
}

func (s *Store) end(k frameKey, content []byte, err error) {
	f := s.flights[k]
	delete(s.flights, k)
	f.content, f.err = content, err
	close(f.done)
}

// failed counts what a reader was denied.
func (s *Store) failed(key string, err error) {
	if isMissing(err) {
		s.metrics.missing.Inc()
		s.log.Error("object is missing from cold storage", "key", key)
	}
}
