package cold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"firn/internal/blob"
	"firn/pkg/stream"
)

// markEvery is how long the fence stays while objects are written: an older copy of
// the data directory is told from the newest if it is older by that. Each mark costs
// a put.
const markEvery = 10 * time.Minute

// ClaimOptions is what a claim goes by.
type ClaimOptions struct {
	// Fence is the highest fence that the data directory knows of.
	Fence uint64
	// Remember persists a fence in the data directory, before it is claimed.
	Remember func(ctx context.Context, fence uint64) error
	// InUse: the catalog names objects that must be here, so that a prefix without
	// an owner record is not this store's.
	InUse bool
	// Rebuilt: the catalog was made from what is here, so that a missing owner record
	// tells nothing.
	Rebuilt bool
}

// claim is that of this process to the prefix.
type claim struct {
	mu     sync.Mutex    // guards what follows
	wanted *ClaimOptions // nil: this store needs no claim
	nonce  string        // tells this process from others that have the same fence
	since  time.Time     // zero: not the owner yet
	marked time.Time     // when the record was last put
}

// Claim takes the prefix for this store; from then on CheckOwner holds it to it.
// Errors: [ErrForeign], [ErrStale], [ErrFenced]; with [stream.ErrColdUnavailable]
// the next CheckOwner tries again.
func (s *Store) Claim(ctx context.Context, o ClaimOptions) error {
	s.claim.mu.Lock()
	defer s.claim.mu.Unlock()
	s.claim.wanted = &o
	s.claim.nonce = s.opts.Unique()
	return s.become(ctx)
}

// CheckOwner returns nil while this process owns the prefix. It is asked before
// every pass that writes or removes objects. Errors: as for Claim.
//
// It raises the fence from time to time. So a data directory that is restored from
// a copy is refused at its start also if the server ran on without a restart.
func (s *Store) CheckOwner(ctx context.Context) error {
	s.claim.mu.Lock()
	defer s.claim.mu.Unlock()
	switch {
	case s.claim.wanted == nil:
		return nil
	case s.claim.since.IsZero():
		return s.become(ctx)
	}
	now, etag, err := s.readOwner(ctx)
	switch {
	case err != nil:
		return err
	case now == nil || now.Nonce != s.claim.nonce:
		return fenced(now)
	case s.opts.Now().Sub(s.claim.marked) < markEvery:
		return nil
	}
	return s.mark(ctx, now, etag, s.claim.since)
}

func fenced(now *Owner) error {
	if now == nil {
		return fmt.Errorf("%w: its owner record is gone; stop this server and look what happened", ErrFenced)
	}
	return fmt.Errorf("%w: store %s on %s since %s; stop this server",
		ErrFenced, now.Store, now.Host, now.Since.Format(time.RFC3339))
}

// become makes this process the owner.
func (s *Store) become(ctx context.Context) error {
	was, etag, err := s.readOwner(ctx)
	if err != nil {
		return err
	}
	if err := s.mayClaim(ctx, was, s.claim.wanted.Fence); err != nil {
		return err
	}
	since := s.opts.Now()
	if err := s.mark(ctx, was, etag, since); err != nil {
		return err
	}
	s.claim.since = since
	return nil
}

// mayClaim refuses a prefix that is another's.
func (s *Store) mayClaim(ctx context.Context, was *Owner, fence uint64) error {
	switch {
	case was == nil && s.claim.wanted.Rebuilt:
		return nil
	case was == nil && s.claim.wanted.InUse:
		return fmt.Errorf("%w: there is no owner record, but the data directory has objects in cold storage; is it the right bucket and prefix?", ErrForeign)
	case was == nil:
		return s.mustBeEmpty(ctx)
	case was.Store != s.opts.StoreID:
		return fmt.Errorf("%w: %s (%s, since %s); choose another prefix or the data directory that belongs to it; one that is lost is made again by firn rebuild",
			ErrForeign, was.Store, was.Host, was.Since.Format(time.RFC3339))
	case was.Fence > fence && s.opts.fault != FaultAnyFence:
		return fmt.Errorf("%w: it knows of fence %d, the owner record of %d; it is a copy or a restored backup, use the one that ran last",
			ErrStale, fence, was.Fence)
	}
	return nil
}

// mark puts a record with the next fence in place of one that has the ETag, or of
// none.
func (s *Store) mark(ctx context.Context, was *Owner, etag string, since time.Time) error {
	o := s.claim.wanted
	fence := o.Fence + 1
	if was != nil {
		fence = max(fence, was.Fence+1)
	}
	// The data directory learns of the fence first: a crash in between leaves it
	// ahead of the record, never behind.
	if err := o.Remember(ctx, fence); err != nil {
		return err
	}
	o.Fence = fence
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	now := s.opts.Now()
	err = s.writeOwner(ctx, Owner{
		Version: ownerVersion, Store: s.opts.StoreID, Fence: fence, Nonce: s.claim.nonce,
		Host: fmt.Sprintf("%s, process %d", host, os.Getpid()), Since: since.UTC(),
	}, etag)
	if err != nil {
		return err
	}
	s.claim.marked = now
	return nil
}

// IsUnavailable reports whether a claim failed for want of the store alone, so
// that it may succeed later as it is. A wrong bucket or a missing right is not that.
func IsUnavailable(err error) bool {
	return errors.Is(err, stream.ErrColdUnavailable) && !errors.Is(err, blob.ErrDenied)
}
