package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/blob"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	// maxDeltas and minDeltaBytes bound the deltas of a generation: with as many, or
	// with more bytes than its base and this, a new base is made. A rebuild reads no
	// more than that, and bases cost at most as much as deltas.
	maxDeltas     = 1024
	minDeltaBytes = 16 << 20
)

// Options configures a [Runner]. Hot, Cold and Blobs are required.
type Options struct {
	Hot *hot.Store
	// Cold is asked before anything is written who owns the bucket.
	Cold *cold.Store
	// Blobs is the bucket behind Cold.
	Blobs blob.Store
	// Interval is the time between two copies (default 1 min).
	Interval time.Duration
	// Grace is how long superseded generations are kept (default 1 h), beside the
	// newest two.
	Grace      time.Duration
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Runner makes copies. Its methods are safe for concurrent use.
type Runner struct {
	opts    Options
	hot     *hot.Store
	blobs   blob.Store
	log     *slog.Logger
	enc     *zstd.Encoder
	metrics *metrics
	started uint64 // ms

	// turn is taken by who makes a copy, and guards the fields below it. It is a
	// channel because a copy takes as long as the bucket does.
	turn       chan struct{}
	generation hot.Generation
	begun      bool   // the generation takes deltas; else a base is next
	next       uint64 // sequence of the next object
	last       link   // the last object of the last copy that was made
	deltas     int
	deltaBytes int64
	baseBytes  int64

	mu     sync.Mutex // guards what follows
	status Status
}

// Status is how copies fare.
type Status struct {
	// Ms is the moment up to which everything is copied, 0 before the first copy.
	Ms uint64
	// Err is what the last attempt failed with, nil when it went well; Since is when
	// attempts began to fail.
	Err   error
	Since time.Time
}

// New makes a runner, and has the store note what changes from now on. Nothing is
// written before Run or Copy.
func New(o Options) (*Runner, error) {
	if o.Interval == 0 {
		o.Interval = time.Minute
	}
	if o.Grace == 0 {
		o.Grace = time.Hour
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("make encoder: %w", err)
	}
	r := &Runner{opts: o, hot: o.Hot, blobs: o.Blobs, log: o.Logger, enc: enc, started: o.Hot.Now(), turn: make(chan struct{}, 1)}
	r.metrics = newMetrics(o.Registerer, r)
	o.Hot.TrackChanges()
	return r, nil
}

// Run makes a copy at once and then one an interval, if anything has changed, until
// ctx ends. What fails is told by Status and tried again.
func (r *Runner) Run(ctx context.Context) error {
	for {
		if _, err := r.Copy(ctx); err != nil && ctx.Err() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.hot.CopyDue():
		case <-time.After(r.opts.Interval):
		}
	}
}

// Copy makes a copy now, unless nothing has changed, and returns the moment up to
// which everything is copied, in ms: what was answered before the call is. Errors:
// those of the bucket, and of [cold.Store.CheckOwner].
func (r *Runner) Copy(ctx context.Context) (uint64, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-r.turn }()
	err := r.step(ctx)
	if err == nil {
		err = r.prune(ctx)
	}
	r.note(ctx, err)
	return r.Status().Ms, err
}

// Stop makes the last copy and says that nothing comes after it. Nothing may change
// the store any more.
func (r *Runner) Stop(ctx context.Context) error {
	if err := r.opts.Cold.CheckOwner(ctx); err != nil {
		return err
	}
	if _, err := r.Copy(ctx); err != nil {
		return err
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	c := r.hot.BeginCopy(false)
	defer c.End(false)
	if !c.Empty() {
		return errors.New("the store has changed after its last copy")
	}
	return r.write(ctx, c, Stop)
}

// step makes a copy unless nothing has changed.
func (r *Runner) step(ctx context.Context) error {
	base := !r.begun || r.deltas >= maxDeltas || r.deltaBytes > max(minDeltaBytes, r.baseBytes)
	if now := r.hot.Now(); r.begun && !r.hot.Changed() {
		r.copied(now)
		return nil // an idle server makes no calls
	}
	// A mark in the owner record changes the catalog: the copy is to have it.
	if err := r.opts.Cold.CheckOwner(ctx); err != nil {
		return err
	}
	c := r.hot.BeginCopy(base)
	made := false
	defer func() { c.End(made) }()
	var err error
	if c.Base {
		err = r.base(ctx, c)
	} else {
		err = r.write(ctx, c, Delta)
	}
	made = err == nil
	if made {
		r.copied(c.Ms)
	}
	return err
}

// base makes a copy of everything, in a generation of its own. The catalog knows of
// it before its first object is there.
func (r *Runner) base(ctx context.Context, c *hot.Copy) error {
	g := hot.Generation{Fence: r.hot.Fence(), Number: r.generation.Number + 1}
	if err := r.hot.BeginGeneration(ctx, g); err != nil {
		return err
	}
	r.generation, r.next, r.last, r.begun = g, 0, noLink, false
	r.deltas, r.deltaBytes, r.baseBytes = 0, 0, 0
	if err := r.write(ctx, c, Base); err != nil {
		return err
	}
	r.begun = true
	return r.hot.CompleteGeneration(ctx, g)
}

// write writes the objects of a copy. When it fails nobody knows what is there: the
// next object has another number, and follows the last one that is known. If it is
// one of several, the next copy is a base.
func (r *Runner) write(ctx context.Context, c *hot.Copy, kind Kind) error {
	w := &writer{ctx: ctx, blobs: r.blobs, enc: r.enc, head: header{
		name:  name{generation: r.generation, seq: r.next, ms: c.Ms},
		store: r.hot.ID(), prev: r.last, life: c.Life,
	}}
	err := c.Entries(w.add)
	if err == nil {
		err = w.put(kind)
	}
	r.metrics.bytes.Add(float64(w.bytes))
	r.metrics.objects.Add(float64(w.parts))
	if err != nil {
		r.next++
		if kind == Base || w.parts > 0 {
			r.begun = false
		}
		return err
	}
	r.next, r.last = w.head.seq, w.head.prev
	if kind == Base {
		r.baseBytes = w.bytes
	} else {
		r.deltas++
		r.deltaBytes += w.bytes
	}
	r.log.Debug("catalog copied", "generation", r.generation.String(), "kind", kind.String(), "objects", w.parts, "bytes", w.bytes)
	return nil
}

func (r *Runner) copied(ms uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Ms = ms
}

// note remembers how an attempt ended, and logs when that changes.
func (r *Runner) note(ctx context.Context, err error) {
	if err != nil && ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil && r.status.Err == nil:
		r.status.Since = time.Now()
		r.log.Warn("cannot copy the catalog, trying again; no object is removed meanwhile", "err", err)
	case err == nil && r.status.Err != nil:
		r.log.Info("catalog is copied again", "after", time.Since(r.status.Since))
	}
	if err != nil {
		r.metrics.failures.Inc()
	}
	r.status.Err = err
}

// Status tells how copies fare.
func (r *Runner) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}
