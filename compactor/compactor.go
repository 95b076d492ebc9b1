package compactor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Compactor runs the steps. Its exported methods may be called concurrently, also
// while Run runs.
type Compactor struct {
	opts    Options
	hot     *hot.Store
	log     *slog.Logger
	metrics *metrics

	// waiting is how many objects wait for a copy of the catalog.
	waiting atomic.Int64

	// Owned by Run.
	swept time.Time
	// passed takes a value after each pass: there may be space to reclaim.
	passed chan struct{}
	// Owned by who calls Reclaim.
	reclaimed reclamation

	mu sync.Mutex // guards what follows
	// readyFrom is the stream with which the next pass begins among those that are
	// ready: some that fill up again and again are not to keep others waiting.
	readyFrom stream.ID
	backoff   rests[stream.ID] // streams whose last seal failed
	hurt      rests[stream.ID] // streams that the hot tier cannot read
	// late are the streams at which the last pass met trouble of the object store.
	// They come last in the next one, in case the trouble is with them alone.
	late    map[stream.ID]bool
	trouble Status

	rewrites rewrites
}

// Status is how the compactor fares.
type Status struct {
	// Err is what the last pass failed with, nil when it went well; Since is when
	// passes began to fail.
	Err   error
	Since time.Time
	// Stuck counts streams that could not be sealed or read at the last try.
	Stuck int
}

// New makes a compactor. It does nothing until Run.
func New(o Options) (*Compactor, error) {
	o = o.withDefaults()
	if o.Encoder == nil {
		e, err := segment.NewEncoder(segment.Options{Concurrency: o.Concurrency})
		if err != nil {
			return nil, err
		}
		o.Encoder = e
	}
	c := &Compactor{opts: o, hot: o.Hot, log: o.Logger, backoff: make(rests[stream.ID]), hurt: make(rests[stream.ID]), late: make(map[stream.ID]bool), passed: make(chan struct{}, 1)}
	c.rewrites.init()
	c.metrics = newMetrics(o.Registerer, c)
	return c, nil
}

// Run works until ctx ends. A failing pass is told by Status and tried again.
func (c *Compactor) Run(ctx context.Context) error {
	// Rewriting files may take long, or wait for room on the disk that only seals and
	// evictions can make: they must not wait for it.
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { c.reclaimAll(ctx) })
	for ctx.Err() == nil {
		more, err := c.Pass(ctx)
		select {
		case c.passed <- struct{}{}:
		default:
		}
		if ctx.Err() != nil {
			break
		}
		c.note(err)
		if more && err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-c.wake(err):
		case <-time.After(c.opts.Interval):
		}
	}
	return nil
}

// wake is what may end the wait after a pass early: pressure on the hot tier. After a
// failure nothing does, so that trouble is not met with haste.
func (c *Compactor) wake(err error) <-chan struct{} {
	if err != nil {
		return nil
	}
	return c.hot.Over()
}

// Pass takes each step but Reclaim once. It reports whether there may be more to do at once.
func (c *Compactor) Pass(ctx context.Context) (more bool, err error) {
	steps := []func(context.Context) (bool, error){c.seal, c.shrink, c.trim}
	if c.opts.SealingOff {
		steps = steps[2:]
	}
	var errs []error
	for _, step := range steps {
		m, err := step(ctx)
		more = more || m
		errs = append(errs, err)
	}
	if !c.opts.SealingOff {
		m, err := c.rewrite(ctx, more)
		more = more || m
		errs = append(errs, err)
	}
	if time.Since(c.swept) >= c.opts.SweepInterval {
		m, err := c.sweep(ctx)
		more = more || m
		errs = append(errs, err)
		if !m {
			c.swept = time.Now()
		}
	}
	return more, errors.Join(errs...)
}

// relieve forgets the failures of streams that have nothing left to seal.
func (c *Compactor) relieve(v *hot.View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.backoff {
		rec, err := v.Incarnation(id)
		if errors.Is(err, stream.ErrNotFound) || err == nil && rec.Unsealed() == 0 {
			delete(c.backoff, id)
		}
	}
}

// resting reports whether a stream is left alone after a failure.
func (c *Compactor) resting(id stream.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backoff.resting(id, time.Now())
}

// spare keeps damage to what the hot tier has of one stream from stopping eviction and
// trimming of the others: the stream is left alone for a while.
func (c *Compactor) spare(id stream.ID, err error) error {
	if !errors.Is(err, hot.ErrDamaged) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hurt.add(id, time.Now()) {
		c.log.Error("cannot read what is needed of a stream", "stream", id.String(), "err", err)
	}
	return nil
}

// spared returns the streams that spare leaves alone at the moment.
func (c *Compactor) spared() map[stream.ID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.hurt.expire(now)
	ids := make(map[stream.ID]bool)
	for id := range c.hurt {
		if c.hurt.resting(id, now) {
			ids[id] = true
		}
	}
	return ids
}

// judge decides what a failed step on some streams means: trouble of the object store
// stops the pass, trouble of the streams only rests them. The first failure of a stream
// is logged, later ones are counted.
func (c *Compactor) judge(ctx context.Context, err error, ids ...stream.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		switch {
		case err == nil:
			delete(c.backoff, id)
		case ctx.Err() != nil || errors.Is(err, stream.ErrUnavailable):
			return err
		case errors.Is(err, stream.ErrColdUnavailable):
			c.late[id] = true
		default:
			c.rest(id, err)
		}
	}
	if errors.Is(err, stream.ErrColdUnavailable) {
		return err
	}
	return nil
}

// rest leaves a stream alone for a while. The caller holds mu.
func (c *Compactor) rest(id stream.ID, err error) {
	if c.backoff.add(id, time.Now()) {
		c.log.Error("cannot seal stream", "stream", id.String(), "err", err)
	}
}

// note remembers how a pass ended, and logs when that changes.
func (c *Compactor) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil && c.trouble.Err == nil:
		c.trouble.Since = time.Now()
		c.log.Warn("compactor cannot work, trying again", "err", err)
	case err == nil && c.trouble.Err != nil:
		c.log.Info("compactor works again", "after", time.Since(c.trouble.Since))
	}
	c.trouble.Err = err
	c.metrics.passes.WithLabelValues(result(err)).Inc()
}

func result(err error) string {
	if err != nil {
		return "failed"
	}
	return "done"
}

// Status tells how the compactor fares.
func (c *Compactor) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.trouble
	s.Stuck = len(c.backoff)
	for id := range c.hurt {
		if c.backoff[id] == nil {
			s.Stuck++
		}
	}
	return s
}
