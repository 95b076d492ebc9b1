package hot

import (
	"context"

	"firn/pkg/stream"
)

// Wait returns nil as soon as a stream has something to tell a reader that is at
// pos: more bytes, the close, its end. It registers before it looks, so that a
// change between the two is not missed. Otherwise it returns ctx's error, or
// [stream.ErrUnavailable] when the store stops.
func (s *Store) Wait(ctx context.Context, id stream.ID, pos uint64) error {
	for {
		g := s.table.enter(id)
		news, err := s.news(id, pos)
		if err != nil || news {
			s.table.leave(id, g)
			return err
		}
		select {
		case <-g.ch:
			// The gate is gone from the table; look at what has changed.
		case <-ctx.Done():
			s.table.leave(id, g)
			return ctx.Err()
		case <-s.stop:
			s.table.leave(id, g)
			return stream.ErrUnavailable
		}
	}
}

func (s *Store) news(id stream.ID, pos uint64) (bool, error) {
	v := s.View()
	defer v.Close()
	rec, err := v.Incarnation(id)
	if err == stream.ErrNotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return rec.Tail > pos || rec.Closed || rec.Deleted, nil
}

func (t *table) enter(id stream.ID) *gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gates[id]
	if g == nil {
		g = &gate{ch: make(chan struct{})}
		t.gates[id] = g
	}
	g.waiters++
	return g
}

func (t *table) leave(id stream.ID, g *gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g.waiters--; g.waiters == 0 && t.gates[id] == g {
		delete(t.gates, id)
	}
}
