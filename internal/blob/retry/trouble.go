package retry

import (
	"context"
	"errors"
	"sync"
	"time"

	"firn/internal/blob"
)

// troubleAfter is how many attempts in a row must fail before that is told: one failure
// is nothing that a person must know of.
const troubleAfter = 3

// trouble knows since when no attempt has gone well. Unlike the breaker it also takes a
// refusal of access for a failure.
type trouble struct {
	mu    sync.Mutex
	fails int // in a row
	since time.Time
	err   error // the latest
}

// note takes the outcome of an attempt. What nobody waited for says nothing.
func (t *trouble) note(ctx context.Context, now time.Time, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !errors.Is(err, blob.ErrUnavailable) && !errors.Is(err, blob.ErrDenied) {
		t.fails, t.err = 0, nil
		return
	}
	if t.fails == 0 {
		t.since = now
	}
	t.fails++
	t.err = err
}

// Trouble returns since when no call to the store has gone well and what the latest one
// failed with, or nil when all is well.
func (s *Store) Trouble() (since time.Time, err error) {
	s.trouble.mu.Lock()
	defer s.trouble.mu.Unlock()
	if s.trouble.fails < troubleAfter {
		return time.Time{}, nil
	}
	return s.trouble.since, s.trouble.err
}

// troubleSeconds is how long the trouble has lasted, 0 without one.
func (s *Store) troubleSeconds() float64 {
	since, err := s.Trouble()
	if err == nil {
		return 0
	}
	return s.opts.Now().Sub(since).Seconds()
}
