package backup

import "errors"

var (
	// ErrNoCopy: there is no complete copy of the catalog under the prefix.
	ErrNoCopy = errors.New("no copy of a catalog is there")
	// ErrDamaged: an object of a copy is not what was written.
	ErrDamaged = errors.New("copy is damaged")
	// ErrVersion: the copy was made by a release that knows more than this one.
	ErrVersion = errors.New("copy is of a newer release")
	// ErrAlive: the store may still have a server.
	ErrAlive = errors.New("a server may still be running on this store")

	// errEnough ends a listing.
	errEnough = errors.New("enough")
)
