package cold

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/blob"
	"firn/pkg/segment"
)

// Options configures a [Store]. The zero value is usable.
type Options struct {
	// StoreID is the id of the hot tier that this is the cold one of. It begins
	// every key.
	StoreID string
	// Local marks the keys of a store that stands in where there is no object
	// store; see [IsLocal].
	Local bool
	// CacheBytes bounds the cache of decoded frames (default 256 MiB).
	CacheBytes int64
	// FetchBytes is about how much compressed data one GET fetches at most
	// (default 8 MiB), ReadAhead how many stored bytes are fetched ahead of a
	// reader that reads on (default 8 MiB; negative: none).
	FetchBytes uint64
	ReadAhead  int64
	// Decoders bounds how many frames are decompressed at a time (default: one a
	// processor).
	Decoders   int
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Unique yields what makes a key or a claim unique; nil is 64 random bits.
	Unique func() string
	// Now is when a claim is made; nil is time.Now.
	Now func() time.Time

	// fault is for tests that plant a fault.
	fault Fault
}

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = 256 << 20
	}
	if o.FetchBytes == 0 {
		o.FetchBytes = 8 << 20
	}
	if o.ReadAhead == 0 {
		o.ReadAhead = 8 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Unique == nil {
		o.Unique = unique
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func unique() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Store is the cold tier. Its methods are safe for concurrent use.
type Store struct {
	opts    Options
	blobs   blob.Store
	log     *slog.Logger
	decoder *segment.Decoder
	cache   *cache
	metrics *metrics

	// fetches are the goroutines that fetch frames; they outlive their readers.
	fetches sync.WaitGroup
	stop    context.Context
	cancel  context.CancelFunc

	// ahead bounds the fetches that nobody waits for yet.
	ahead chan struct{}

	mu      sync.Mutex // guards what follows
	flights map[frameKey]*flight
	// ends are reads by the frame that they stopped in or before, to notice who
	// reads on.
	ends map[frameKey]extent

	claim claim

	suspects suspects
}

// Open makes a store over blobs. It calls nothing.
func Open(blobs blob.Store, o Options) (*Store, error) {
	o = o.withDefaults()
	d, err := segment.NewDecoder(segment.DecoderOptions{Concurrency: o.Decoders})
	if err != nil {
		return nil, fmt.Errorf("open cold tier: %w", err)
	}
	s := &Store{
		opts: o, blobs: blobs, log: o.Logger, decoder: d, cache: newCache(o.CacheBytes, o.fault),
		ahead:   make(chan struct{}, maxAhead),
		flights: make(map[frameKey]*flight),
		ends:    make(map[frameKey]extent),
	}
	s.stop, s.cancel = context.WithCancel(context.Background())
	s.metrics = newMetrics(o.Registerer, s)
	return s, nil
}

// Close ends what is being fetched. Reads that wait for it fail.
func (s *Store) Close() {
	s.cancel()
	s.fetches.Wait()
}
