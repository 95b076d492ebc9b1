package subscribe

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: no such subscription.
	ErrNotFound = errors.New("subscription does not exist")
	// ErrExists: the id is taken by another configuration (B§6.2).
	ErrExists = errors.New("subscription exists with another configuration")
	// ErrLimit: one more than a server, a subscription or a request may have.
	ErrLimit = errors.New("limit is reached")
	// ErrInvalid: a request that has no meaning. What wraps it says why.
	ErrInvalid = errors.New("request is invalid")
	// ErrToken: not a token of this subscription (B§7.3).
	ErrToken = errors.New("token is not valid for this subscription")
	// ErrTokenExpired: the token is too old.
	ErrTokenExpired = errors.New("token has expired")
	// ErrFenced: the wake is not the current one, or its lease is over (B§7.3).
	ErrFenced = errors.New("wake is not the current one")
	// ErrNoWork: a claim when nothing is pending.
	ErrNoWork = errors.New("nothing is pending")
	// ErrOffset: an ack of an offset that the stream does not have.
	ErrOffset = errors.New("acked offset is not one of the stream")

	// errFull ends a walk: no more is wanted.
	errFull = errors.New("list is full")
)

// HeldError refuses a claim of a wake that another worker holds (B§7.2).
type HeldError struct {
	Holder     string
	Generation uint64
}

func (e *HeldError) Error() string { return "wake is held by another worker" }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
