package cold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"firn/internal/blob"
)

// ownerKey is the record that says which store may write under the prefix.
const ownerKey = "owner"

// ownerVersion is the form of the record that this release reads and writes.
const ownerVersion = 1

// Owner is the owner record. Its fence grows with every start of its store and
// while it writes, so that an older copy of its data directory can be told.
type Owner struct {
	Version int       `json:"version"`
	Store   string    `json:"store"`
	Fence   uint64    `json:"fence"`
	Nonce   string    `json:"nonce"` // of the process that owns the prefix
	Host    string    `json:"host"`
	Since   time.Time `json:"since"` // when it became the owner
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
	o, info, err := ReadOwner(ctx, s.blobs)
	return o, info.ETag, err
}

// ReadOwner returns the owner record under a prefix, nil when there is none. Errors:
// [ErrForeign] when it cannot be read, [stream.ErrColdUnavailable].
func ReadOwner(ctx context.Context, blobs blob.Store) (*Owner, blob.Info, error) {
	data, info, err := blob.ReadAll(ctx, blobs, ownerKey, 0, -1)
	if errors.Is(err, blob.ErrNotFound) {
		return nil, blob.Info{}, nil
	}
	if err != nil {
		return nil, blob.Info{}, unavailable("get", ownerKey, err)
	}
	var o Owner
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, blob.Info{}, fmt.Errorf("%w: its owner record is not readable: %w", ErrForeign, err)
	}
	if o.Version != ownerVersion {
		return nil, blob.Info{}, fmt.Errorf("%w: its owner record has version %d, this release reads %d", ErrForeign, o.Version, ownerVersion)
	}
	return &o, info, nil
}

// writeOwner replaces the record that has the ETag, or none. It asks afterwards who
// has won, for stores without conditional puts too. Errors: [ErrFenced].
func (s *Store) writeOwner(ctx context.Context, o Owner, etag string) error {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode owner record: %w", err)
	}
	_, err = s.blobs.Put(ctx, ownerKey, bytes.NewReader(data), blob.PutOptions{IfNoneMatch: etag == "", IfMatch: etag})
	if errors.Is(err, blob.ErrNotSupported) {
		_, err = s.blobs.Put(ctx, ownerKey, bytes.NewReader(data), blob.PutOptions{})
	}
	// A refusal may be about a put of this process that was lost and came late: the
	// record itself tells who won.
	if err != nil && !errors.Is(err, blob.ErrExists) && !errors.Is(err, blob.ErrPrecondition) {
		return unavailable("put", ownerKey, err)
	}
	now, _, err := s.readOwner(ctx)
	if err != nil {
		return err
	}
	if now == nil || now.Nonce != o.Nonce {
		return fenced(now)
	}
	return nil
}
