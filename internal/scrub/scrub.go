package scrub

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"firn/pkg/segment"
	"firn/tier/hot"
)

const (
	// shortPause follows the first object about which the store gave no answer; each
	// further one in a row doubles it, up to longPause.
	shortPause = time.Second
	longPause  = 5 * time.Minute
	// maxIdle bounds how long nothing is looked at.
	maxIdle = time.Hour
	// troublePause follows a failure of the hot tier.
	troublePause = 10 * time.Second
)

// Scrubber reads objects again. Suspect, Recheck and Status may be called concurrently,
// also while Run runs; Step is for tests, in place of Run.
type Scrubber struct {
	opts    Options
	hot     *hot.Store
	log     *slog.Logger
	metrics *metrics
	decoder *segment.Decoder
	limit   *rate.Limiter

	suspects suspects
	known    known
	// recheck asks for what is damaged to be looked at now.
	recheck atomic.Bool
	// wholeMs is the mark's, for the metric; 0 is not known yet.
	wholeMs atomic.Uint64

	// Owned by Run.
	loaded bool
	round  round
	later  later
	walk   walk
	mend   mend
	quiet  time.Time // nothing is read before: the store gives no answers
	silent int       // objects in a row without an answer
}

// New makes a scrubber. It does nothing until Run.
func New(o Options) (*Scrubber, error) {
	o = o.withDefaults()
	d, err := segment.NewDecoder(segment.DecoderOptions{Concurrency: 1})
	if err != nil {
		return nil, err
	}
	s := &Scrubber{opts: o, hot: o.Hot, log: o.Logger, decoder: d,
		limit: rate.NewLimiter(rate.Limit(o.Rate), pieceBytes), later: make(later)}
	s.suspects.wake = make(chan struct{}, 1)
	s.metrics = newMetrics(o.Registerer, s)
	return s, nil
}

// Run works until ctx ends.
func (s *Scrubber) Run(ctx context.Context) error {
	trouble := false
	for ctx.Err() == nil {
		idle, err := s.Step(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			if !trouble {
				s.log.Warn("cannot read objects again, trying later", "err", err)
			}
			idle = troublePause
		}
		trouble = err != nil
		if idle <= 0 {
			continue
		}
		t := time.NewTimer(idle)
		select {
		case <-ctx.Done():
		case <-s.suspects.wake:
		case <-t.C:
		}
		t.Stop()
	}
	if err := s.save(context.WithoutCancel(ctx)); err != nil {
		s.log.Warn("cannot remember how far the reading of all objects is", "err", err)
	}
	return nil
}

// Step looks at one object, or does what else is due. It returns for how long there is
// nothing to do.
func (s *Scrubber) Step(ctx context.Context) (time.Duration, error) {
	if err := s.load(ctx); err != nil {
		return 0, err
	}
	now := s.opts.Now()
	if now.Before(s.quiet) {
		return s.idle(ctx, s.quiet.Sub(now))
	}
	steps := []func(context.Context, time.Time) (bool, error){s.lookAtSuspect, s.repair, s.lookAtDamaged, s.lookAtLater, s.goOn}
	for _, step := range steps {
		if did, err := step(ctx, now); did || err != nil {
			return 0, err
		}
	}
	now = s.opts.Now()
	until := now.Add(maxIdle)
	for _, t := range [...]time.Time{s.mend.due, s.walk.due, s.later.due(), s.roundDue()} {
		if !t.IsZero() && t.Before(until) {
			until = t
		}
	}
	return s.idle(ctx, until.Sub(now))
}

// load reads what earlier processes have left.
func (s *Scrubber) load(ctx context.Context) error {
	if s.loaded {
		return nil
	}
	if err := s.known.load(s.hot, s.metrics); err != nil {
		return err
	}
	now := s.opts.Now()
	s.walk.due = now.Add(recheckEvery)
	if s.known.status().Objects() > 0 {
		s.mend.due, s.walk.due = now, now
	}
	if err := s.loadRound(ctx, now); err != nil {
		return err
	}
	s.loaded = true
	return nil
}

func (s *Scrubber) lookAtSuspect(ctx context.Context, now time.Time) (bool, error) {
	key, ok := s.suspects.take(now)
	if !ok {
		return false, nil
	}
	d, err := s.damage(key)
	if err != nil || d != 0 {
		return true, err // it is known
	}
	_, err = s.look(ctx, key, attempts)
	return true, err
}

func (s *Scrubber) lookAtLater(ctx context.Context, now time.Time) (bool, error) {
	key, ok := s.later.take(now)
	if !ok {
		return false, nil
	}
	_, err := s.look(ctx, key, attempts)
	return true, err
}

// look reads an object and takes note of what it finds.
func (s *Scrubber) look(ctx context.Context, key string, times int) (verdict, error) {
	f := s.examine(ctx, key, times)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	s.metrics.objects.WithLabelValues(f.verdict.String()).Inc()
	now := s.opts.Now()
	if f.verdict == unanswered {
		s.quiet = now.Add(min(shortPause<<min(s.silent, 16), longPause))
		s.silent++
		s.later.add(key, now)
		s.metrics.waiting.Set(float64(len(s.later)))
		s.log.Debug("object store gave no answer about an object", "key", key, "err", f.reason)
		return f.verdict, nil
	}
	s.silent = 0
	delete(s.later, key)
	s.metrics.waiting.Set(float64(len(s.later)))
	return f.verdict, s.note(ctx, key, f)
}
