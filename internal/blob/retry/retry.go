// Package retry tries calls of a store again, and stops calling a store that
// keeps failing.
//
// It is the only place that retries: the stores below make one attempt a call. An
// attempt follows a failed one after a random wait that grows exponentially, and
// not before the store said. All calls share one breaker (breaker.go): while it
// is open they fail at once with blob.ErrUnavailable, so that an outage costs the
// store no storm of requests and the callers no waiting.
//
// Trying a Put under a condition again may meet the object of one's own earlier
// attempt, whose answer was lost. So a refusal after an attempt of unknown outcome
// is checked against the contents: the same bytes count as success. Rivals that
// must be told apart have to write different bytes, such as a random number each.
package retry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"firn/internal/blob"

	"github.com/prometheus/client_golang/prometheus"
)

// Options of the wrapper. The zero value is usable.
type Options struct {
	// Attempts bounds the attempts of a call, the first included; default 5.
	Attempts int
	// BaseWait is the upper bound of the first wait, which doubles with each
	// further one; default 100 ms.
	BaseWait time.Duration
	// MaxWait bounds a wait; default 10 s. A store that asks for a longer one
	// ends the call.
	MaxWait time.Duration
	// MaxElapsed is the time after which no further attempt begins; default 1 min.
	MaxElapsed time.Duration
	// Breaker sets the shared breaker.
	Breaker BreakerOptions

	// Registerer takes the metrics; nil for none.
	Registerer prometheus.Registerer

	// Now, Wait and Rand are for tests. Wait returns early with the context's
	// error; Rand returns a number in [0, n).
	Now  func() time.Time
	Wait func(ctx context.Context, d time.Duration) error
	Rand func(n int64) int64
}

func (o Options) withDefaults() Options {
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.BaseWait <= 0 {
		o.BaseWait = 100 * time.Millisecond
	}
	if o.MaxWait <= 0 {
		o.MaxWait = 10 * time.Second
	}
	if o.MaxElapsed <= 0 {
		o.MaxElapsed = time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Rand == nil {
		o.Rand = rand.Int64N
	}
	o.Breaker = o.Breaker.withDefaults()
	return o
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Store wraps a store.
type Store struct {
	inner   blob.Store
	opts    Options
	breaker *breaker
	trouble trouble
	metrics *metrics
}

var _ blob.Store = (*Store)(nil)

// New wraps a store.
func New(inner blob.Store, opts Options) *Store {
	opts = opts.withDefaults()
	m := newMetrics(opts.Registerer)
	s := &Store{inner: inner, opts: opts, metrics: m, breaker: newBreaker(opts, m)}
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "firn_object_trouble_seconds",
			Help: "How long no call to the object store has gone well, 0 when they do.",
		}, s.troubleSeconds))
	}
	return s
}

// do runs fn until it succeeds, fails for good, or the bounds are reached. It
// returns fn's last error as it is.
func (s *Store) do(ctx context.Context, op string, fn func() error) error {
	start := s.opts.Now()
	for attempt := 1; ; attempt++ {
		done, err := s.breaker.begin()
		if err != nil {
			return fmt.Errorf("%s: %w", op, err)
		}
		err = fn()
		done(outcomeOf(ctx, err))
		s.trouble.note(ctx, s.opts.Now(), err)
		if !blob.Retryable(err) || ctx.Err() != nil || attempt == s.opts.Attempts {
			return err
		}
		d, ok := s.delay(attempt, err)
		if !ok || s.opts.Now().Add(d).Sub(start) > s.opts.MaxElapsed {
			return err
		}
		s.metrics.retries.WithLabelValues(op).Inc()
		if werr := s.opts.Wait(ctx, d); werr != nil {
			return fmt.Errorf("%w: %w", werr, err)
		}
	}
}

// delay returns the wait after a failed attempt: anything between nothing and the
// exponential bound, so that callers who failed together do not return together,
// and on top of what the store asked for.
func (s *Store) delay(attempt int, err error) (time.Duration, bool) {
	bound := s.opts.MaxWait
	if shift := attempt - 1; shift < 30 && s.opts.BaseWait<<shift < bound {
		bound = s.opts.BaseWait << shift
	}
	d := time.Duration(s.opts.Rand(int64(bound) + 1))
	var ra *blob.RetryAfterError
	if errors.As(err, &ra) {
		if ra.After > s.opts.MaxWait {
			return 0, false
		}
		d += ra.After
	}
	return d, true
}

func outcomeOf(ctx context.Context, err error) outcome {
	switch {
	case err == nil:
		return succeeded
	case ctx.Err() != nil:
		return unknown // the caller left
	case errors.Is(err, blob.ErrUnavailable):
		return failed
	}
	return succeeded // the store answered
}
