package cold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"firn/internal/blob"
	"firn/pkg/stream"
)

// ownerKey is the record that says which store may write under the prefix.
const ownerKey = "owner"

// ownerVersion is the form of the record that this release reads and writes.
const ownerVersion = 1

// Owner is the owner record. Its fence grows with every start of its store, so
// that a process which was superseded can tell.
type Owner struct {
	Version int       `json:"version"`
	Store   string    `json:"store"`
	Fence   uint64    `json:"fence"`
	Nonce   string    `json:"nonce"` // tells two claims of one fence apart
	Host    string    `json:"host"`
	Since   time.Time `json:"since"`
}

// owner is the claim that this process holds.
type owner struct {
	mu     sync.Mutex
	wanted *ClaimOptions // nil: this store needs no claim
	record *Owner        // nil: not claimed yet
}

// ClaimOptions is what a claim goes by.
type ClaimOptions struct {
	// Fence is the highest fence that the data directory knows of.
	Fence uint64
	// Remember persists a fence in the data directory, before it is claimed.
	Remember func(ctx context.Context, fence uint64) error
}

// Claim takes the prefix for this store; from then on CheckOwner holds it to it.
// Errors: [ErrForeign], [ErrStale], [ErrFenced]; with [stream.ErrColdUnavailable]
// the next CheckOwner tries again.
func (s *Store) Claim(ctx context.Context, o ClaimOptions) error {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.owner.wanted = &o
	return s.claim(ctx)
}

// CheckOwner returns nil while this process owns the prefix. It is asked before
// every pass that writes or removes objects. Errors: as for Claim.
func (s *Store) CheckOwner(ctx context.Context) error {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	switch {
	case s.owner.wanted == nil:
		return nil
	case s.owner.record == nil:
		return s.claim(ctx)
	}
	now, _, err := s.readOwner(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.Fence != s.owner.record.Fence || now.Nonce != s.owner.record.Nonce {
		return s.fenced(now)
	}
	return nil
}

func (s *Store) fenced(now *Owner) error {
	if now == nil {
		return fmt.Errorf("%w: its owner record is gone; stop this server and look what happened", ErrFenced)
	}
	return fmt.Errorf("%w: store %s on %s since %s; stop this server",
		ErrFenced, now.Store, now.Host, now.Since.Format(time.RFC3339))
}

func (s *Store) claim(ctx context.Context) error {
	o := s.owner.wanted
	was, etag, err := s.readOwner(ctx)
	if err != nil {
		return err
	}
	if err := s.mayClaim(ctx, was, o.Fence); err != nil {
		return err
	}
	// The data directory learns of the fence first: a crash in between leaves it
	// ahead of the record, never behind.
	fence := o.Fence + 1
	if was != nil {
		fence = max(fence, was.Fence+1)
	}
	if err := o.Remember(ctx, fence); err != nil {
		return err
	}
	o.Fence = fence
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	record := Owner{
		Version: ownerVersion, Store: s.opts.StoreID, Fence: fence, Nonce: s.opts.Unique(),
		Host: fmt.Sprintf("%s, process %d", host, os.Getpid()), Since: s.opts.Now().UTC(),
	}
	if err := s.writeOwner(ctx, record, etag); err != nil {
		return err
	}
	s.owner.record = &record
	return nil
}

// mayClaim refuses a prefix that is another's.
func (s *Store) mayClaim(ctx context.Context, was *Owner, fence uint64) error {
	switch {
	case was == nil:
		return s.mustBeEmpty(ctx)
	case was.Store != s.opts.StoreID:
		return fmt.Errorf("%w: %s (%s, since %s); choose another prefix or the data directory that belongs to it",
			ErrForeign, was.Store, was.Host, was.Since.Format(time.RFC3339))
	case was.Fence > fence:
		return fmt.Errorf("%w: it knows of start %d, the owner record of %d; it is a copy or a restored backup, use the one that ran last",
			ErrStale, fence, was.Fence)
	}
	return nil
}

var errFound = errors.New("found an object")

func (s *Store) mustBeEmpty(ctx context.Context) error {
	var key string
	err := s.blobs.List(ctx, "", "", func(i blob.Info) error {
		key = i.Key
		return errFound
	})
	if errors.Is(err, errFound) {
		return fmt.Errorf("%w: there is no owner record but an object, %s; choose another prefix", ErrForeign, key)
	}
	if err != nil {
		return unavailable("list", "", err)
	}
	return nil
}

// readOwner returns nil when there is no record.
func (s *Store) readOwner(ctx context.Context) (*Owner, string, error) {
	data, info, err := blob.ReadAll(ctx, s.blobs, ownerKey, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", unavailable("get", ownerKey, err)
	}
	var o Owner
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, "", fmt.Errorf("%w: its owner record is not readable: %w", ErrForeign, err)
	}
	if o.Version != ownerVersion {
		return nil, "", fmt.Errorf("%w: its owner record has version %d, this release reads %d", ErrForeign, o.Version, ownerVersion)
	}
	return &o, info.ETag, nil
}

// writeOwner replaces the record that has the ETag, or none. A store without
// conditional puts is asked afterwards who won.
func (s *Store) writeOwner(ctx context.Context, o Owner, etag string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner record: %w", err)
	}
	_, err = s.blobs.Put(ctx, ownerKey, bytes.NewReader(data), blob.PutOptions{IfNoneMatch: etag == "", IfMatch: etag})
	if errors.Is(err, blob.ErrNotSupported) {
		_, err = s.blobs.Put(ctx, ownerKey, bytes.NewReader(data), blob.PutOptions{})
	}
	switch {
	case errors.Is(err, blob.ErrExists), errors.Is(err, blob.ErrPrecondition):
		return fmt.Errorf("%w while this one started", ErrFenced)
	case err != nil:
		return unavailable("put", ownerKey, err)
	}
	now, _, err := s.readOwner(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.Nonce != o.Nonce {
		return s.fenced(now)
	}
	return nil
}

// IsUnavailable reports whether a claim failed for want of the store alone, so
// that it may succeed later as it is. A wrong bucket or a missing right is not that.
func IsUnavailable(err error) bool {
	return errors.Is(err, stream.ErrColdUnavailable) && !errors.Is(err, blob.ErrDenied)
}
