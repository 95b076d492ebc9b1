package hot

import "firn/pkg/stream"

// OnGrowth has fn called with the name of every stream that a batch adds bytes to, and
// of every one whose name it gives up, after the batch is published and before it is
// answered. The committer waits for fn: it must be quick and must not use the store.
// Nil ends that; only with nil does it cost nothing.
func (s *Store) OnGrowth(fn func(n stream.Name, gone bool)) {
	if fn == nil {
		s.growth.Store(nil)
		return
	}
	s.growth.Store(&fn)
}

// tellGrowth calls the function that OnGrowth was given.
func (s *Store) tellGrowth(changes []change) {
	fn := s.growth.Load()
	if fn == nil {
		return
	}
	for _, c := range changes {
		switch {
		case c.grown:
			(*fn)(c.rec.Name, false)
		case c.rec == nil:
			(*fn)(c.name, true)
		}
	}
}
