package cold

import (
	"context"

	"firn/pkg/segment"
)

// flight is one frame on its way: many readers may wait for it.
type flight struct {
	done    chan struct{} // closed when the rest is set; nil if it always was
	content []byte
	err     error
}

func (f *flight) wait(ctx context.Context) ([]byte, error) {
	if f.done == nil {
		return f.content, f.err
	}
	select {
	case <-f.done:
		return f.content, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

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
			flights[i] = &flight{content: content}
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
		s.suspect(key, "object is missing from cold storage")
	}
}
