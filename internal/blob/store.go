package blob

import (
	"context"
	"io"
	"time"
)

// Store is a flat, ordered map from keys to immutable objects.
//
// All methods may be called concurrently. Every call ends in bounded time, also
// when the other side never answers; ending its context ends it at once with the
// context's error. Keys obey [CheckKey]; others are [ErrKey].
//
// What an error means is in its sentinel (see errors.go); test it with errors.Is.
// ErrUnavailable and ErrCorrupt may be tried again, the others will fail the same
// way until something else changes.
type Store interface {
	// Put writes an object under the condition in opts. When it returns nil the
	// object is durable and visible to every later call, in all its bytes.
	//
	// After ErrExists, ErrPrecondition, ErrNotSupported, ErrDenied or ErrKey this
	// call wrote nothing. After any other error the outcome is unknown: the
	// object is absent or complete, and may still appear later. So whoever
	// tries again with a condition may meet an object of its own; see package
	// retry, which compares contents in that case.
	//
	// The Info has Key, Size and ETag, the latter for a later PutOptions.IfMatch.
	Put(ctx context.Context, key string, body Body, opts PutOptions) (Info, error)

	// Get reads n bytes from offset off.
	//
	//	off >= 0, n > 0   exactly [off, off+n), else ErrRange
	//	off >= 0, n < 0   from off to the end; ErrRange if off is at or past the
	//	                  end, except that off 0 of an empty object is no bytes
	//	off < 0,  n < 0   the last -off bytes, or all if there are fewer
	//	off = 0,  n = 0   no bytes: only the Info
	//
	// Any other combination is ErrRange. The reader yields exactly those bytes
	// and io.EOF, or an error: ErrUnavailable if the transfer broke off or
	// stalled, ErrCorrupt if it ended cleanly at another length or failed a
	// checksum. That the bytes are those once written is proven only by
	// checksums inside the object. The reader must be closed; ctx holds for it too.
	//
	// The Info describes the whole object, whatever the range.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, Info, error)

	// Delete removes objects; one that does not exist counts as removed. It
	// returns nil if the store has confirmed every key, and otherwise a
	// *DeleteError that names the keys it did not confirm. Repeatable.
	Delete(ctx context.Context, keys ...string) error

	// List calls fn for each object whose key begins with prefix and is greater
	// than after, in ascending order of the keys' bytes. Objects written or
	// deleted meanwhile may be seen or not. An error of fn ends the listing and
	// is returned as it is.
	List(ctx context.Context, prefix, after string, fn func(Info) error) error
}

// Body is the content of a Put. It is read at least once, and again from any
// point when an attempt fails, so it must not change. *bytes.Reader,
// *strings.Reader and *io.SectionReader are Bodies.
type Body interface {
	io.ReaderAt
	// Size returns the length in bytes.
	Size() int64
}

// PutOptions says what a Put expects to find under its key. The zero value
// expects nothing: it replaces what is there.
type PutOptions struct {
	// IfNoneMatch lets the Put succeed only if the key is free; else ErrExists.
	// Of several racing Puts exactly one wins.
	IfNoneMatch bool
	// IfMatch lets the Put succeed only if the key holds the object with this
	// ETag; else ErrPrecondition. Not together with IfNoneMatch.
	IfMatch string
}

// Info describes an object.
type Info struct {
	Key  string
	Size int64 // bytes
	// ETag changes when the object is replaced by other bytes. Its form is the store's.
	ETag string
	// Modified is when the object was written, by the store's clock. Zero in
	// the result of a Put.
	Modified time.Time
}
