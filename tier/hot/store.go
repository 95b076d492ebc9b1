package hot

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/time/rate"

	"firn/pkg/stream"
)

// format is the version of the key layout and of everything below it. A store of
// oldFormat is read, and marked as one of format when it is opened: from then on it has
// records that releases before this one do not know.
const (
	format    = "firn-hot-2"
	oldFormat = "firn-hot-1"
)

// Store is the hot tier. Its methods are safe for concurrent use.
type Store struct {
	opts    Options
	log     *slog.Logger
	db      *pebble.DB
	cache   *pebble.Cache
	frugal  *frugalFS // nil without a reserve
	table   *table
	uses    *uses
	id      string
	metrics *metrics

	requests sync.Pool // of *request that are not queued
	queue    chan *request
	stop     chan struct{} // closed when no more commands are taken
	stopped  chan struct{} // closed when the committer has ended
	over     chan struct{} // takes a value when a batch leaves too many hot bytes
	once     sync.Once
	dir      string

	// state is the committed state; only the committer writes it.
	state atomic.Pointer[state]
	// changes are what a copy of the catalog takes; nil while nobody makes copies.
	changes atomic.Pointer[changes]
	// growth is what OnGrowth was given.
	growth atomic.Pointer[func(stream.Name, bool)]
	// full refuses appends: the disk is below its reserve.
	full atomic.Bool
	// broken is set when a batch has failed: nothing is acknowledged any more.
	broken atomic.Bool
	// failing logs background work of Pebble that fails.
	failing *rate.Sometimes
}

// Open opens or makes the store in dir. Errors: [ErrLocked], [ErrFormat],
// [ErrDamaged]; a message says what to do.
func Open(dir string, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{
		opts: o, log: o.Logger, dir: dir,
		uses:    newUses(),
		failing: seldom(),
		queue:   make(chan *request, 1024),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		over:    make(chan struct{}, 1),
	}
	s.requests.New = newRequest
	s.metrics = newMetrics(o.Registerer, s)
	if err := s.openPebble(); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		close(s.stop)
		s.db.Close()
		s.cache.Unref()
		return nil, err
	}
	s.table = newTable(s.db, o.Records)
	s.watchSpace() // before the first append
	go s.commit()
	return s, nil
}

// load reads what identifies the store, or writes it into an empty one.
func (s *Store) load() error {
	v, err := get(s.db, keyFormat)
	if err != nil {
		return fmt.Errorf("read format: %w", err)
	}
	switch {
	case v == nil:
		if err := s.initialize(); err != nil {
			return fmt.Errorf("initialize store: %w", err)
		}
	case string(v) == format:
	case string(v) == oldFormat:
		if err := s.db.Set(keyFormat, []byte(format), pebble.Sync); err != nil {
			return fmt.Errorf("upgrade store: %w", err)
		}
	default:
		return fmt.Errorf("%w: %s holds %q, this release reads %q", ErrFormat, s.dir, v, format)
	}
	id, err := get(s.db, keyStoreID)
	if err != nil {
		return fmt.Errorf("read store id: %w", err)
	}
	raw, err := get(s.db, keyState)
	if err != nil {
		return fmt.Errorf("read store state: %w", err)
	}
	if id == nil || raw == nil {
		return fmt.Errorf("%w: %s has a format but no identity", ErrDamaged, s.dir)
	}
	st, err := decodeState(raw)
	if err != nil {
		return err
	}
	s.id = string(id)
	s.state.Store(&st)
	return nil
}

func (s *Store) initialize() error {
	var id [8]byte
	v := s.opts.Random()
	for i := range id {
		id[i] = byte(v >> (8 * i))
	}
	b := s.db.NewBatch()
	now := s.now()
	for _, kv := range []struct{ k, v []byte }{
		{keyFormat, []byte(format)},
		{keyStoreID, hex.AppendEncode(nil, id[:])},
		{keyState, state{}.encode()},
		{keyBucket(stream.DefaultBucket), bucket{created: now}.encode()},
	} {
		if err := b.Set(kv.k, kv.v, nil); err != nil {
			return err
		}
	}
	return b.Commit(pebble.Sync)
}

// ID identifies this store for ever: 16 hexadecimal digits, made at the first start.
func (s *Store) ID() string { return s.id }

// View returns the latest durable state. It must be closed soon.
func (s *Store) View() *View { return s.table.view() }

// Now is the store's clock, in ms.
func (s *Store) Now() uint64 { return s.now() }

func (s *Store) now() uint64 { return uint64(s.opts.Now().UnixMilli()) }

// HotBytes is how many stored bytes have a hot copy.
func (s *Store) HotBytes() uint64 { return s.state.Load().Hot }

// UnsealedBytes is how many stored bytes have no cold copy.
func (s *Store) UnsealedBytes() uint64 { return s.state.Load().Unsealed }

// Streams counts the visible streams of all buckets.
func (s *Store) Streams() uint64 { return s.state.Load().Streams }

// Over yields a value, soon, whenever hot bytes grow while there are more than
// Options.SoftBytes.
func (s *Store) Over() <-chan struct{} { return s.over }

// Fence is the highest number of a start that the store remembers.
func (s *Store) Fence() uint64 { return s.state.Load().Fence }

// Close ends the committer after what is queued, waits until all views are closed
// and closes the database. Commands that come later get [stream.ErrUnavailable]; no
// view may be taken after it. Closing again does nothing.
func (s *Store) Close() (err error) {
	s.once.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	close(s.stop)
	<-s.stopped
	s.table.close()
	err := s.db.Close()
	s.cache.Unref()
	if err != nil {
		return fmt.Errorf("close hot tier: %w", err)
	}
	return nil
}

// Run watches the disk and expires streams until ctx ends. The caller owns the
// goroutine.
func (s *Store) Run(ctx context.Context) error {
	return s.watch(ctx)
}

// isRefusal reports whether an error refuses one command; any other means that
// the store cannot go on.
func isRefusal(err error) bool {
	for _, e := range refusals {
		if errors.Is(err, e) {
			return true
		}
	}
	var (
		closed  *stream.ClosedError
		trimmed *stream.TrimmedError
		stale   *stream.StaleEpochError
		gap     *stream.SeqGapError
	)
	return errors.As(err, &closed) || errors.As(err, &trimmed) || errors.As(err, &stale) || errors.As(err, &gap)
}

var refusals = []error{
	ErrConflict, errIDTaken, ErrNoSubscription, ErrFenced, ErrHeld,
	stream.ErrBucketNotFound, stream.ErrBucketExists, stream.ErrBucketNotEmpty,
	stream.ErrNotFound, stream.ErrGone, stream.ErrExists, stream.ErrNameBlocked,
	stream.ErrContentType, stream.ErrSeqRegression, stream.ErrProducerLimit, stream.ErrProducerStart,
	stream.ErrForkSourceNotFound, stream.ErrForkSourceGone, stream.ErrOffsetPastTail,
	stream.ErrSnapshotPastTail,
}
