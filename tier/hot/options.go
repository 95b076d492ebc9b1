package hot

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
)

// Options configures a [Store]. The zero value is usable.
type Options struct {
	// FS is where the store lives; nil is the operating system's.
	FS vfs.FS
	// Logger may be nil.
	Logger *slog.Logger
	// Registerer receives the package's metrics; nil means none are exported.
	Registerer prometheus.Registerer
	// Now is the wall clock; nil is the time of day at start, advanced by the
	// monotonic clock, so that a clock that is set back or forth expires nothing.
	Now func() time.Time
	// Random yields the random part of incarnations; nil is a random source.
	Random func() uint64
	// Fatal is called when the store cannot go on: a failed write or sync, or
	// corruption of its own structures. It must not return. Nil exits the process.
	Fatal func(msg string)

	// CacheBytes is Pebble's block cache (default 64 MiB), MemTableBytes the size
	// of one of its memtables (default 64 MiB).
	CacheBytes    int64
	MemTableBytes uint64
	// OpenFiles is how many tables may be open at a time (default 1000).
	OpenFiles int
	// Records bounds the cache of published stream records (default 65,536).
	Records int
	// HardBytes refuses appends while more hot bytes are held; 0 is no limit.
	HardBytes uint64
	// SoftBytes is the number of hot bytes from which [Store.Over] tells; 0 is never.
	SoftBytes uint64
	// MinFreeBytes refuses appends while the disk has less free; 0 is no limit.
	MinFreeBytes uint64
	// SealTarget is how many unsealed bytes make a stream ready to seal
	// (default 8 MiB).
	SealTarget uint64
	// Producers bounds the producer ids of a stream (default 10,000).
	Producers uint64
	// Grace is how long a retired object is kept (default 1 h), and an intent
	// before it is given up (the same, at least 10 min).
	Grace time.Duration
	// KeepHistory is how long the objects of trimmed history are kept
	// (default 7 days). Negative: for ever.
	KeepHistory time.Duration

	// fault is for tests that plant a fault.
	fault Fault
}

// Fault plants a fault, so that a test can show that it would be found.
type Fault int

const (
	// NoFault is how the store runs.
	NoFault Fault = iota
	// FaultNoSync answers before the batch is durable.
	FaultNoSync
	// FaultShowUnsynced publishes before the batch is durable.
	FaultShowUnsynced
	// FaultProducerApart commits producer state in a batch of its own.
	FaultProducerApart
	// FaultSealAnywhere names segments that do not begin where a stream is sealed up to.
	FaultSealAnywhere
	// FaultClaimAny names objects that the catalog does not know any more.
	FaultClaimAny
	// FaultEvictUnsealed gives up hot bytes that have no cold copy.
	FaultEvictUnsealed
	// FaultTrimAhead lets go of a segment of which the end is needed.
	FaultTrimAhead
	// FaultForgetForks lets go of what only forks need.
	FaultForgetForks
	// FaultRetireNamed retires an object when the first of its segments is let go of.
	FaultRetireNamed
	// FaultKeepName leaves the name of a stream that is deleted.
	FaultKeepName
	// FaultForgetIntent lets objects be written whose intent may have been given up.
	FaultForgetIntent
)

// WithFault returns the options with a planted fault. Only tests want this.
func (o Options) WithFault(f Fault) Options {
	o.fault = f
	return o
}

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		start := time.Now()
		o.Now = func() time.Time { return start.Add(time.Since(start)) }
	}
	if o.Random == nil {
		o.Random = rand.Uint64
	}
	if o.Fatal == nil {
		o.Fatal = func(string) { os.Exit(1) }
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 64 << 20
	}
	if o.Records == 0 {
		o.Records = 1 << 16
	}
	if o.SealTarget == 0 {
		o.SealTarget = 8 << 20
	}
	if o.Producers == 0 {
		o.Producers = 10_000
	}
	if o.Grace == 0 {
		o.Grace = time.Hour
	}
	if o.KeepHistory == 0 {
		o.KeepHistory = 7 * 24 * time.Hour
	}
	return o
}
