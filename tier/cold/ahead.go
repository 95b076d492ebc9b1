package cold

import "firn/pkg/segment"

const (
	// maxAhead is how many fetches run ahead of readers at a time.
	maxAhead = 4
	// maxEnds bounds how many reads are remembered.
	maxEnds = 4096
)

// extent is a range of positions.
type extent struct{ from, to uint64 }

// readOn fetches ahead of a reader that goes on where a read has stopped before. It
// only fills the cache, and never waits.
func (s *Store) readOn(ref segment.Ref, parts []segment.Part) {
	if s.opts.ReadAhead < 0 || !s.sequential(ref, parts) {
		return
	}
	select {
	case s.ahead <- struct{}{}:
	default:
		return
	}
	next := s.next(ref, parts[len(parts)-1].To)
	if len(next) == 0 {
		<-s.ahead
		return
	}
	flights := s.request(ref.Object, next)
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

// sequential remembers a read, and reports whether it went on from an earlier one
// and may go on itself. Many readers may be at different places of one object. A
// reader of a JSON stream goes on a little before the place where its read stopped:
// it uses whole messages only. But a frame ends with a message, so that is in the
// same frame.
func (s *Store) sequential(ref segment.Ref, parts []segment.Part) bool {
	first, last := parts[0], parts[len(parts)-1]
	read := extent{first.From, last.To}
	here, there := frameKey{ref.Object, first.Offset}, frameKey{ref.Object, last.Offset}
	if last.Skip+last.To-last.From == uint64(last.Content) {
		there.offset += uint64(last.Length) // the next frame
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.ends[here]
	if known = known && was.from < read.from && read.from <= was.to; known {
		delete(s.ends, here)
	}
	if read.to == ref.To {
		return false
	}
	if len(s.ends) >= maxEnds {
		clear(s.ends)
	}
	s.ends[there] = read
	return known
}

// next returns what is to be fetched ahead of a position. It is nothing while half
// of what should be there is: small steps of a reader are not to become small GETs.
func (s *Store) next(ref segment.Ref, pos uint64) []segment.Part {
	ahead := uint64(s.opts.ReadAhead)
	half, err := ref.Span(pos, min(ref.To, pos+ahead/2+1))
	if err != nil {
		return nil // the segment ends here
	}
	s.mu.Lock()
	there := s.present(ref.Object, half.Parts[len(half.Parts)-1])
	s.mu.Unlock()
	if there {
		return nil
	}
	span, err := ref.Span(pos, min(ref.To, pos+ahead))
	if err != nil {
		return nil
	}
	parts := span.Parts
	s.mu.Lock()
	for len(parts) > 0 && s.present(ref.Object, parts[0]) {
		parts = parts[1:]
	}
	s.mu.Unlock()
	return parts[:s.batch(parts)]
}

// present reports whether a frame is cached or on its way.
func (s *Store) present(object string, p segment.Part) bool {
	k := frameKey{object, p.Offset}
	if _, ok := s.cache.get(k); ok {
		return true
	}
	return s.flights[k] != nil
}
