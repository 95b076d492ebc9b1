package scrub

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/compactor"
	"firn/internal/blob"
	"firn/tier/hot"
)

// Options configures a [Scrubber]. Hot and Compactor are required.
type Options struct {
	Hot *hot.Store
	// Compactor writes segments again from their hot copies.
	Compactor *compactor.Compactor
	// Remote is the object store, nil if there is none. Local holds what was written
	// before there was one, nil if there is none.
	Remote, Local blob.Store

	// Period is the time in which every object is read once (default 30 days).
	// Negative: there are no rounds, and only what readers stumble over is looked at.
	Period time.Duration
	// Rate bounds what is read, in bytes a second (default 16 MiB). It goes before
	// Period.
	Rate int64

	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Now is the clock; nil is time.Now. Wait returns after a time, or early with the
	// context's error; nil waits.
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
}

func (o Options) withDefaults() Options {
	if o.Period == 0 {
		o.Period = 30 * 24 * time.Hour
	}
	if o.Rate == 0 {
		o.Rate = 16 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	return o
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
