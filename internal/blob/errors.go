package blob

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Answers of the store.
var (
	// ErrNotFound: the store said that it has no object under this key. A missing
	// bucket, a missing right and an answer of unknown origin are not this.
	ErrNotFound = errors.New("object does not exist")
	// ErrExists: PutOptions.IfNoneMatch met an object.
	ErrExists = errors.New("object exists already")
	// ErrPrecondition: PutOptions.IfMatch met another object, or none.
	ErrPrecondition = errors.New("object is not the expected one")
	// ErrRange: the object does not have all of the bytes asked for.
	ErrRange = errors.New("range is not within the object")
	// ErrKey: not a key that stores can hold.
	ErrKey = errors.New("object key is not valid")
)

// Failures of the store.
var (
	// ErrUnavailable: no answer, or not now: network, timeout, throttling, 5xx,
	// full disk, open breaker. Try again later. The error may hold a
	// *RetryAfterError.
	ErrUnavailable = errors.New("object store is unavailable")
	// ErrCorrupt: bytes or an answer that contradict what the store said itself.
	ErrCorrupt = errors.New("object store gave damaged data")
	// ErrDenied: rights, credentials, bucket, region or settings are wrong.
	// Somebody must change them; nothing is known about the object.
	ErrDenied = errors.New("object store refused access")
	// ErrNotSupported: the store cannot do what was asked, such as a Put under a
	// condition.
	ErrNotSupported = errors.New("object store does not support the operation")
)

// RetryAfterError is an [ErrUnavailable] of a store that said when to come back.
type RetryAfterError struct {
	After time.Duration
	Err   error // what happened; may be nil
}

func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%v, retry after %v", ErrUnavailable, e.After)
	}
	return fmt.Sprintf("%v (retry after %v)", e.Err, e.After)
}

// Unwrap returns ErrUnavailable and the cause.
func (e *RetryAfterError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnavailable}
	}
	return []error{ErrUnavailable, e.Err}
}

// DeleteError tells which keys of a Delete may still be there, and why. Keys that
// it does not name are gone.
type DeleteError struct {
	Failed map[string]error // never empty
}

func (e *DeleteError) Error() string {
	first := slices.Min(slices.Collect(maps.Keys(e.Failed)))
	return fmt.Sprintf("delete: %d objects not confirmed, such as %q: %v", len(e.Failed), first, e.Failed[first])
}

// Unwrap returns the errors of all keys, each once, so that errors.Is answers
// whether any key failed in that way.
func (e *DeleteError) Unwrap() []error {
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(e.Failed)) {
		err := e.Failed[k]
		if !slices.ContainsFunc(errs, func(x error) bool { return x.Error() == err.Error() }) {
			errs = append(errs, err)
		}
	}
	return errs
}

// DeleteFailed returns err as the outcome of every key, nil for no key or no error.
func DeleteFailed(keys []string, err error) error {
	if err == nil || len(keys) == 0 {
		return nil
	}
	failed := make(map[string]error, len(keys))
	for _, k := range keys {
		failed[k] = err
	}
	return &DeleteError{Failed: failed}
}

// Retryable reports whether the same call may succeed when it is made again.
func Retryable(err error) bool {
	return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrCorrupt)
}
