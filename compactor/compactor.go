package compactor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// candidates bounds how many streams one pass seals from.
const candidates = 256

// Compactor runs the steps. Its exported methods may be called concurrently, also
// while Run runs.
type Compactor struct {
	opts    Options
	hot     *hot.Store
	log     *slog.Logger
	metrics *metrics

	// evicted counts the bytes evicted since the last reclamation.
	evicted atomic.Uint64

	// Owned by Run.
	reclaimed time.Time
	swept     time.Time

	mu      sync.Mutex
	backoff map[stream.ID]*backoff // streams whose last seal failed
	// late are the streams at which the last pass met trouble of the object store.
	// They come last in the next one, in case the trouble is with them alone.
	late    map[stream.ID]bool
	trouble Status
}

// backoff is how long a stream whose seal failed is left alone.
type backoff struct {
	failures int
	until    time.Time
}

// Status is how the compactor fares.
type Status struct {
	// Err is what the last pass failed with, nil when it went well; Since is when
	// passes began to fail.
	Err   error
	Since time.Time
	// Stuck counts streams that could not be sealed at the last try.
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
	c := &Compactor{opts: o, hot: o.Hot, log: o.Logger, backoff: make(map[stream.ID]*backoff), late: make(map[stream.ID]bool)}
	c.metrics = newMetrics(o.Registerer, c)
	return c, nil
}

// Run works until ctx ends. A failing pass is told by Status and tried again.
func (c *Compactor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		more, err := c.Pass(ctx)
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

// Pass takes each step once. It reports whether there may be more to do at once.
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
	if time.Since(c.swept) >= c.opts.SweepInterval {
		errs = append(errs, c.sweep(ctx))
		c.swept = time.Now()
	}
	errs = append(errs, c.reclaim(ctx))
	return more, errors.Join(errs...)
}

// seal seals one segment of each stream that is due. One that fails is left alone
// for a while, so that it does not keep the others waiting.
func (c *Compactor) seal(ctx context.Context) (bool, error) {
	ids, err := c.plan()
	if err != nil || len(ids) == 0 {
		return false, err
	}
	// An owner that was superseded must not change anything any more.
	if err := c.opts.Cold.CheckOwner(ctx); err != nil {
		return false, err
	}
	// Trouble with one stream does not stop the others, an outage does.
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opts.Concurrency)
	var sealed atomic.Uint64
	for _, id := range ids {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			n, err := c.sealOne(gctx, id)
			sealed.Add(n)
			return c.judge(gctx, id, err)
		})
	}
	err = g.Wait()
	return sealed.Load() > 0, err
}

// plan lists the streams to seal from: those with enough bytes or an end, those
// with old bytes, and, while the hot tier cannot be brought down to its budget
// otherwise, those with the oldest ones.
func (c *Compactor) plan() ([]stream.ID, error) {
	v := c.hot.View()
	defer v.Close()
	c.relieve(v)
	ready, err := v.Ready(candidates)
	if err != nil {
		return nil, err
	}
	oldest, err := v.Unsealed(0, candidates)
	if err != nil {
		return nil, err
	}
	p, now := c.opts.Policy, c.hot.Now()
	var ids []stream.ID
	seen := make(map[stream.ID]bool)
	take := func(id stream.ID) {
		if !seen[id] && !c.resting(id) {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	for _, id := range ready {
		take(id)
	}
	short := p.short(c.hot.HotBytes(), c.hot.UnsealedBytes())
	for _, a := range oldest {
		if !p.aged(a.Ms, now) && short == 0 {
			break
		}
		if c.resting(a.ID) {
			continue // others have to make up for it
		}
		take(a.ID)
		if rec, err := v.Incarnation(a.ID); err == nil {
			short -= min(short, rec.Unsealed(), p.Target)
		}
	}
	return c.lateLast(ids), nil
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

// lateLast orders what one pass seals, and begins to note for the next.
func (c *Compactor) lateLast(ids []stream.ID) []stream.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var late []stream.ID
	ids = slices.DeleteFunc(ids, func(id stream.ID) bool {
		if c.late[id] {
			late = append(late, id)
		}
		return c.late[id]
	})
	clear(c.late)
	return append(ids, late...)
}

// resting reports whether a stream is left alone after a failure.
func (c *Compactor) resting(id stream.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.backoff[id]
	return b != nil && time.Now().Before(b.until)
}

// judge decides what a failed seal means: trouble of the object store stops the
// pass, trouble of one stream only rests that stream. The first failure of a
// stream is logged, later ones are counted.
func (c *Compactor) judge(ctx context.Context, id stream.ID, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		delete(c.backoff, id)
		return nil
	}
	if ctx.Err() != nil || errors.Is(err, stream.ErrUnavailable) {
		return err
	}
	if errors.Is(err, stream.ErrColdUnavailable) {
		c.late[id] = true
		return err
	}
	b := c.backoff[id]
	if b == nil {
		b = &backoff{}
		c.backoff[id] = b
		c.log.Error("cannot seal stream", "stream", id.String(), "err", err)
	}
	b.failures++
	b.until = time.Now().Add(min(time.Second<<min(b.failures, 10), 10*time.Minute))
	return nil
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
	return s
}
