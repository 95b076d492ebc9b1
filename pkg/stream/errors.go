package stream

import (
	"errors"
	"fmt"
)

// Errors of names and of malformed input. The request changes nothing.
var (
	// ErrBucketName: not a valid bucket id (X§1.1).
	ErrBucketName = errors.New("bucket ids are 4 to 64 characters of a-z, 0-9, _ and -")
	// ErrStreamName: not a valid stream id or path (X§1.1).
	ErrStreamName = errors.New("stream ids are UTF-8 without slash, NUL or \"..\", within the length limit")
	// ErrContentTypeMalformed: not of the form type/subtype.
	ErrContentTypeMalformed = errors.New("content type is not of the form type/subtype")
	// ErrOffsetMalformed: not an offset of this server's spelling (B§8).
	ErrOffsetMalformed = errors.New("offset is malformed")
	// ErrOffsetOtherLife: an offset of another stream, or of an earlier one of this name.
	ErrOffsetOtherLife = errors.New("offset belongs to another life of the stream")
	// ErrOffsetPastTail: beyond the last byte.
	ErrOffsetPastTail = errors.New("offset is past the tail of the stream")
	// ErrOffsetNotBoundary: inside a message of a JSON stream.
	ErrOffsetNotBoundary = errors.New("offset is not at a message boundary")
	// ErrEmptyBody: an append without bytes that does not close (B§5.2).
	ErrEmptyBody = errors.New("append has no body")
	// ErrEmptyArray: an append of no messages (B§9.1.3).
	ErrEmptyArray = errors.New("append is an empty JSON array")
)

// Errors of buckets.
var (
	// ErrBucketNotFound: no such bucket.
	ErrBucketNotFound = errors.New("bucket does not exist")
	// ErrBucketExists: the bucket is there already (X§1.2).
	ErrBucketExists = errors.New("bucket exists already")
	// ErrBucketNotEmpty: the bucket still holds streams, perhaps soft-deleted ones (X§1.5).
	ErrBucketNotEmpty = errors.New("bucket is not empty")
	// ErrBucketReserved: the default bucket cannot be deleted.
	ErrBucketReserved = errors.New("the default bucket cannot be deleted")
)

// Errors of streams.
var (
	// ErrNotFound: no such stream, or expired.
	ErrNotFound = errors.New("stream does not exist")
	// ErrGone: the stream is deleted but forks still need it (B§5.4).
	ErrGone = errors.New("stream is deleted, its forks remain")
	// ErrExists: the stream exists with another configuration (B§5.1).
	ErrExists = errors.New("stream exists with another configuration")
	// ErrNameBlocked: the name is that of a deleted stream that forks still need (B§4.2).
	ErrNameBlocked = errors.New("name is blocked by a deleted stream that has forks")
	// ErrContentType: not the stream's content type (B§5.2).
	ErrContentType = errors.New("content type differs from the stream's")
	// ErrSeqRegression: Stream-Seq is not greater than the last one (B§5.2).
	ErrSeqRegression = errors.New("Stream-Seq is not greater than the last one accepted")
	// ErrProducerLimit: the stream takes no more producer ids.
	ErrProducerLimit = errors.New("stream has reached its limit of producers")
	// ErrProducerStart: a new epoch must begin at sequence 0 (B§5.2.1).
	ErrProducerStart = errors.New("a new producer epoch must start at sequence 0")
)

// Errors of forks (B§4.2).
var (
	// ErrForkSourceNotFound: the source does not exist.
	ErrForkSourceNotFound = errors.New("fork source does not exist")
	// ErrForkSourceGone: the source is soft-deleted.
	ErrForkSourceGone = errors.New("fork source is deleted")
	// ErrForkSubOffset: the sub-offset leads past the data or its limit.
	ErrForkSubOffset = errors.New("fork sub-offset is beyond the data")
)

// Errors of snapshots (X§2).
var (
	// ErrSnapshotNotFound: no snapshot at that offset.
	ErrSnapshotNotFound = errors.New("snapshot does not exist")
	// ErrSnapshotLatest: the visible snapshot cannot be deleted.
	ErrSnapshotLatest = errors.New("the latest snapshot cannot be deleted, bootstrap needs it")
	// ErrSnapshotPastTail: published beyond the tail.
	ErrSnapshotPastTail = errors.New("snapshot offset is past the tail of the stream")
	// ErrSnapshotTooLarge: more bytes than the limit.
	ErrSnapshotTooLarge = errors.New("snapshot exceeds the size limit")
)

// Errors of the service. The request may be tried again.
var (
	// ErrHotFull: the hot tier is at its hard limit, or the disk at its reserve.
	ErrHotFull = errors.New("hot tier is full")
	// ErrColdUnavailable: the object store did not give what was needed.
	ErrColdUnavailable = errors.New("cold storage is unavailable")
	// ErrUnavailable: the store is stopping or has stopped after a failure.
	ErrUnavailable = errors.New("store is unavailable")
)

// ClosedError refuses an append to a closed stream (B§5.2) and says where it ends.
type ClosedError struct{ Tail Offset }

func (e *ClosedError) Error() string { return "stream is closed" }

// TrimmedError refuses an offset below the earliest retained one (X§2.2).
type TrimmedError struct{ Earliest Offset }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("offset is below the earliest retained one, %s", e.Earliest)
}

// StaleEpochError refuses a producer whose epoch has been superseded (B§5.2.1).
type StaleEpochError struct{ Current uint64 }

func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("producer epoch is stale, the current one is %d", e.Current)
}

// SeqGapError refuses a producer's sequence number that leaves a gap (B§5.2.1).
type SeqGapError struct{ Expected, Received uint64 }

func (e *SeqGapError) Error() string {
	return fmt.Sprintf("producer sequence has a gap: expected %d, received %d", e.Expected, e.Received)
}
