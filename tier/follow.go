package tier

import (
	"context"
	"sync"

	"firn/pkg/stream"
)

// Follower reads one incarnation of a stream page by page and waits at its tail.
// It never sees a successor of the same name. It is for one goroutine.
type Follower struct {
	store *Store
	info  Info
	pos   uint64
	close func()
}

// Follow opens a live reader (B§5.7, B§5.8). Until it is closed, the stream does
// not expire by idleness. Errors: as for Read.
func (s *Store) Follow(ctx context.Context, name stream.Name, start stream.Start) (*Follower, error) {
	v, rec, pos, err := s.enter(ctx, name, start)
	if err != nil {
		return nil, err
	}
	v.Close()
	return &Follower{store: s, info: info(rec), pos: pos, close: sync.OnceFunc(s.hot.Hold(rec))}, nil
}

// Info is the stream as it was when the follower was opened.
func (f *Follower) Info() Info { return f.info }

// Next returns the page at the follower's position and moves past it; at the tail
// it is empty. Errors: [stream.ErrNotFound] or [stream.ErrGone] once the
// incarnation is deleted or expired; a [*stream.TrimmedError] when a snapshot has
// overtaken the follower; [stream.ErrColdUnavailable].
func (f *Follower) Next(ctx context.Context) (Page, error) {
	v := f.store.hot.View()
	rec, err := f.store.again(v, f.info.ID, f.pos)
	if err != nil {
		v.Close()
		return Page{}, err
	}
	p, err := f.store.livePage(ctx, v, rec, f.pos)
	if err != nil {
		return Page{}, err
	}
	f.pos = p.Next.Position
	return p, nil
}

// Wait returns nil when there is something new at the follower's position: bytes,
// the close, the end of the stream. Otherwise it returns ctx's error, or
// [stream.ErrUnavailable] when the store stops.
func (f *Follower) Wait(ctx context.Context) error {
	return f.store.hot.Wait(ctx, f.info.ID, f.pos)
}

// Close ends the hold on the TTL. It may be called more than once.
func (f *Follower) Close() { f.close() }
