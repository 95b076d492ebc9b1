package api

import (
	"context"
	"time"
)

// admitLive refuses live readers once the server is stopping.
func (s *Server) admitLive(a *answer) error {
	if s.draining.Err() != nil {
		return errDraining
	}
	a.live = true
	return nil
}

// patience returns a context that ends after a while, with ctx, or with the call of
// Drain.
func (s *Server) patience(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(s.draining, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}
