package compactor

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/pkg/segment"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Options configures a [Compactor]. Hot and Cold are required.
type Options struct {
	Hot  *hot.Store
	Cold *cold.Store
	// Local holds objects that were written before there was a cold store; nil
	// when there are none.
	Local *cold.Store
	// Encoder compresses segments; nil is one with the defaults.
	Encoder *segment.Encoder
	Logger  *slog.Logger
	// Registerer receives the package's metrics; nil means none are exported.
	Registerer prometheus.Registerer

	// Policy says when and what.
	Policy Policy
	// Concurrency bounds seals at a time (default 2).
	Concurrency int
	// Interval is the time between passes that find nothing to do (default 1 s).
	Interval time.Duration
	// SweepInterval is the time between sweeps (default 1 min).
	SweepInterval time.Duration
	// SealingOff is for a server without cold storage: nothing is sealed or
	// evicted, but snapshots that were replaced are removed.
	SealingOff bool
}

// Policy is what the planner goes by. Sizes are stored bytes.
type Policy struct {
	// Budget is how many hot bytes are kept (default 2 GiB).
	Budget uint64
	// MinAge keeps younger bytes hot where the budget allows. It yields when the
	// hot bytes are half-way from the budget to the hard limit.
	MinAge time.Duration
	// HardBytes is where appends are refused (default twice the budget).
	HardBytes uint64
	// Target is the size at which a stream's bytes are sealed (default 8 MiB), and
	// about the content of a segment.
	Target uint64
	// MaxAge is the age at which they are sealed whatever their size (default 10 min),
	// and the time between two rounds of merging small segments.
	MaxAge time.Duration
	// RewriteRate bounds how many stored bytes a second are written again, merged or out
	// of objects of which little is needed (default 8 MiB).
	RewriteRate uint64
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Concurrency == 0 {
		o.Concurrency = 2
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	if o.SweepInterval == 0 {
		o.SweepInterval = time.Minute
	}
	p := &o.Policy
	if p.Budget == 0 {
		p.Budget = 2 << 30
	}
	if p.HardBytes == 0 {
		p.HardBytes = 2 * p.Budget
	}
	if p.Target == 0 {
		p.Target = 8 << 20
	}
	if p.MaxAge == 0 {
		p.MaxAge = 10 * time.Minute
	}
	if p.RewriteRate == 0 {
		p.RewriteRate = 8 << 20
	}
	return o
}
