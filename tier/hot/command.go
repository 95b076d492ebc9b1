package hot

import (
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Commands are all the changes that the store knows. They carry every id and
// choice that they need; the time is stamped when a command is queued. What a
// command does is decided by txn.apply alone.
type (
	// CreateBucket: [stream.ErrBucketExists].
	CreateBucket struct{ Bucket string }

	// DeleteBucket: [stream.ErrBucketNotFound], [stream.ErrBucketNotEmpty].
	DeleteBucket struct{ Bucket string }

	// Create makes a stream or a fork, or finds one that is configured alike.
	// Errors: [stream.ErrBucketNotFound], [stream.ErrExists],
	// [stream.ErrNameBlocked], the fork errors, a [*stream.TrimmedError];
	// [ErrConflict] when Found has lost the name.
	Create struct {
		ID stream.ID
		// Found is the incarnation that has the name, 0 for none. A request is not
		// resolved in full when it is only to be compared, so it must not create.
		Found       stream.ID
		Name        stream.Name
		ContentType string
		Mode        stream.Mode
		Lifetime    stream.Lifetime
		Closed      bool
		// Payload are stored bytes, whole messages in JSON mode.
		Payload []byte
		Fork    *CreateFork
	}

	// CreateFork is the part of Create that makes it a fork. Position is Anchor
	// and SubOffset resolved; ContentType and Mode are the source's.
	CreateFork struct {
		Source    stream.ID
		From      stream.Name
		Anchored  bool // the request named an offset
		Anchor    uint64
		SubOffset uint64
		Position  uint64
	}

	// Append adds bytes, closes, or both. Errors: those of [stream.Admit],
	// [stream.ErrNotFound], [stream.ErrGone], [stream.ErrProducerLimit].
	Append struct {
		ID          stream.ID
		ContentType string
		// Payload are stored bytes, whole messages in JSON mode.
		Payload  []byte
		Seq      *string
		Producer *stream.Producer
		Close    bool
	}

	// Delete removes an incarnation, or hides it while forks need it.
	// Errors: [stream.ErrNotFound], [stream.ErrGone].
	Delete struct{ ID stream.ID }

	// Touch renews a sliding deadline.
	Touch struct{ ID stream.ID }

	// Expire deletes an incarnation if its lifetime is over; else nothing happens.
	Expire struct{ ID stream.ID }

	// Publish makes a snapshot visible and moves the earliest offset (X§2.2). The
	// object must be intended. Errors: [stream.ErrNotFound], [stream.ErrGone],
	// [*stream.TrimmedError], [stream.ErrSnapshotPastTail], [ErrConflict].
	Publish struct {
		ID       stream.ID
		Snapshot Snapshot
	}

	// Intend records that an object is about to be written. Errors: [ErrConflict]
	// when the catalog knows the key.
	Intend struct{ Object string }

	// Prolong gives an intent its whole grace again, right before the object is written.
	// Errors: [ErrConflict] unless the object is intended still.
	Prolong struct{ Object string }

	// Abandon retires intended objects that will not be named.
	Abandon struct{ Objects []string }

	// Seal names a segment: the stream's bytes [Ref.From, Ref.To) are in the object.
	// Errors: [ErrConflict] unless the stream lives, is sealed up to Ref.From and
	// the object is still intended.
	Seal struct {
		ID   stream.ID
		Ref  segment.Ref
		Size uint64 // of the object
	}

	// SealPack names segments of several streams in one object, at most [PackStep] a
	// command: the first one that names any makes the object live, later ones join it.
	// A stream that has changed so that its segment does not apply is passed over.
	// Errors: [ErrConflict] when none applies, or the object is neither intended nor
	// live.
	SealPack struct {
		Pack
		Parts []Part
	}

	// Replace puts segments of an object, at most [PackStep] a command, in the place of
	// older ones: merged ones, or copies. A stream that does not live or no longer has
	// exactly the older ones is passed over. Errors: as for SealPack.
	Replace struct {
		Pack
		Parts []Replacement
	}

	// Unmerge takes a stream out of the index of those with segments to merge, if it
	// has none or is gone.
	Unmerge struct{ ID stream.ID }

	// Evict gives up the hot copy of a stream's sealed bytes below To, of at most
	// evictStep segments. Nothing happens when they are given up already. Errors:
	// [ErrConflict] when To is not sealed.
	Evict struct {
		ID stream.ID
		To uint64
	}

	// Trim lets go of at most Limit segments that lie below a stream's floor, or
	// belong to an incarnation that is gone.
	Trim struct {
		ID    stream.ID
		Limit int
		// From is where an earlier step on this incarnation has stopped, or 0. It spares
		// the walk over what was deleted, which would make a million steps a million
		// squared.
		From uint64
	}

	// Forget drops retired objects from the catalog: the store has confirmed that
	// they are gone.
	Forget struct{ Objects []string }

	// Postpone lets the sweep look at retired objects again only after the grace: the
	// store did not confirm that they are gone.
	Postpone struct{ Objects []string }

	// Fence remembers the number of a start, before cold storage is claimed with it.
	Fence struct{ Number uint64 }
)

// PackStep bounds how many segments one command names or replaces, so that it does
// not hold the committer for long.
const PackStep = 256

// Pack is an object whose segments are named in several steps.
type Pack struct {
	Object string
	// Size is that of the object, Content that of all its ranges together, in bytes.
	Size, Content uint64
}

// Part is a segment of a stream.
type Part struct {
	ID  stream.ID
	Ref segment.Ref
}

// Replacement is a segment of a stream in the place of those that it Was.
type Replacement struct {
	ID  stream.ID
	Was []Piece
	Ref segment.Ref
}

// Piece is a segment as far as it tells it from another one of the same range.
type Piece struct {
	From, To uint64
	Object   string
}

// PackResult is the outcome of SealPack and Replace.
type PackResult struct {
	// Passed are the streams whose segments did not apply.
	Passed []stream.ID
}

// CreateResult is the outcome of Create.
type CreateResult struct {
	Record *Record
	// Created is false when the stream was there, configured alike.
	Created bool
}

// AppendResult is the outcome of Append.
type AppendResult struct {
	Tail      stream.Offset
	Closed    bool
	Duplicate bool
	// Producer is the producer's state afterwards, nil without one.
	Producer *stream.ProducerState
}

// TrimResult is the outcome of Trim.
type TrimResult struct {
	// Segments let go of by this command; Done: none are left to let go of.
	Segments int
	Done     bool
	// Next is where the next step goes on.
	Next uint64
}
