package cold

import (
	"errors"
	"fmt"

	"firn/internal/blob"
	"firn/pkg/stream"
)

var (
	// ErrMissing: the store says that it does not have the object. It comes with
	// [stream.ErrColdUnavailable].
	ErrMissing = errors.New("object is missing from cold storage")
	// ErrForeign: the prefix belongs to another store, or holds objects of unknown
	// origin.
	ErrForeign = errors.New("cold storage belongs to another store")
	// ErrStale: the owner record is newer than the data directory, which must be a
	// copy or a restored backup.
	ErrStale = errors.New("data directory is older than cold storage")
	// ErrFenced: another process has taken the prefix over.
	ErrFenced = errors.New("another process has taken cold storage over")
)

// unavailable wraps what a store answered.
func unavailable(doing, key string, err error) error {
	if errors.Is(err, blob.ErrNotFound) {
		return fmt.Errorf("%s %s: %w: %w", doing, key, ErrMissing, stream.ErrColdUnavailable)
	}
	return fmt.Errorf("%s %s: %w: %w", doing, key, stream.ErrColdUnavailable, err)
}
