package tier

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Options configures a [Store]. Hot and Cold are required.
type Options struct {
	Hot *hot.Store
	// Cold holds segments and snapshots.
	Cold *cold.Store
	// Local is asked for the objects that Cold does not hold because they were
	// written before there was one; nil when there are none.
	Local *cold.Store
	// SpoolDir is where snapshots wait while they are received (default: the
	// system's directory for temporary files).
	SpoolDir string
	Logger   *slog.Logger

	// ReadBytes bounds a page (default 4 MiB); a longer JSON message is returned
	// whole.
	ReadBytes int
	// BootstrapBytes bounds the part bodies of one bootstrap (default and at most
	// 8 MiB), BootstrapMemory those of all bootstraps together (default 128 MiB).
	BootstrapBytes  int
	BootstrapMemory int64
	// SnapshotBytes bounds a snapshot (default 128 MiB).
	SnapshotBytes int64

	// fault is for tests that plant a fault.
	fault Fault
}

// MaxBootstrap bounds the part bodies of one bootstrap (S).
const MaxBootstrap = 8 << 20

func (o Options) withDefaults() Options {
	if o.SpoolDir == "" {
		o.SpoolDir = os.TempDir()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ReadBytes == 0 {
		o.ReadBytes = 4 << 20
	}
	if o.BootstrapBytes == 0 || o.BootstrapBytes > MaxBootstrap {
		o.BootstrapBytes = MaxBootstrap
	}
	if o.BootstrapMemory == 0 {
		o.BootstrapMemory = 128 << 20
	}
	if o.SnapshotBytes == 0 {
		o.SnapshotBytes = 128 << 20
	}
	o.BootstrapMemory = max(o.BootstrapMemory, 2*int64(o.BootstrapBytes))
	return o
}

// Store is both tiers as one. Its methods are safe for concurrent use.
type Store struct {
	opts      Options
	hot       *hot.Store
	log       *slog.Logger
	bootstrap *semaphore.Weighted
	buffers   sync.Pool // of *[]byte
	shared    shared
}

// New joins two open tiers. The caller closes them after the last call.
func New(o Options) *Store {
	o = o.withDefaults()
	return &Store{
		opts: o, hot: o.Hot, log: o.Logger,
		bootstrap: semaphore.NewWeighted(o.BootstrapMemory),
		buffers:   sync.Pool{New: func() any { return new([]byte) }},
		shared:    shared{pages: make(map[stream.ID]*sharedPage)},
	}
}

// Head returns what a stream is at the moment. It does not renew a TTL (B§5.5).
// Errors: [stream.ErrBucketNotFound], [stream.ErrNotFound], [stream.ErrGone].
func (s *Store) Head(ctx context.Context, name stream.Name) (Info, error) {
	v := s.hot.View()
	defer v.Close()
	rec, err := s.visible(ctx, v, name)
	if err != nil {
		return Info{}, err
	}
	return info(rec), nil
}

// Delete removes a stream (B§5.4). Errors: as for Head.
func (s *Store) Delete(ctx context.Context, name stream.Name) error {
	rec, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	return s.hot.Delete(ctx, rec.ID)
}

// find is visible for callers that need the record alone.
func (s *Store) find(ctx context.Context, name stream.Name) (*hot.Record, error) {
	v := s.hot.View()
	defer v.Close()
	return s.visible(ctx, v, name)
}

// visible returns the record of a stream that clients may use. One whose lifetime
// is over is removed on the way, so that its name is free at once.
func (s *Store) visible(ctx context.Context, v *hot.View, name stream.Name) (*hot.Record, error) {
	rec, err := v.Stream(name)
	if errors.Is(err, stream.ErrNotFound) {
		if _, err := v.Bucket(name.Bucket); err != nil {
			return nil, err
		}
		return nil, stream.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if rec.Deleted {
		return nil, stream.ErrGone
	}
	if s.hot.Expired(rec) {
		return nil, s.expire(ctx, rec)
	}
	s.hot.Revive(rec)
	return rec, nil
}

// expire removes a stream whose lifetime is over and returns what its users get.
func (s *Store) expire(ctx context.Context, rec *hot.Record) error {
	if err := s.hot.Expire(ctx, rec.ID); err != nil && !errors.Is(err, stream.ErrNotFound) && !errors.Is(err, stream.ErrGone) {
		return fmt.Errorf("expire %s: %w", rec.ID, err)
	}
	return stream.ErrNotFound
}

func info(r *hot.Record) Info {
	i := Info{
		Name: r.Name, ID: r.ID, ContentType: r.ContentType, Mode: r.Mode,
		Tail: r.TailOffset(), Earliest: r.Offset(r.Earliest), Closed: r.Closed,
		Lifetime:    r.Lifetime,
		CreatedAt:   time.UnixMilli(int64(r.CreatedAt)).UTC(),
		LastWriteAt: time.UnixMilli(int64(r.LastWrite)).UTC(),
	}
	if r.Snapshot != nil {
		si := snapshotInfo(r)
		i.Snapshot = &si
	}
	return i
}
