package segment

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt: the bytes are not what a writer of this format made. It comes
	// wrapped with what was found.
	ErrCorrupt = errors.New("segment is corrupt")
	// ErrVersion: the bytes are intact but of a format version that this release
	// does not read.
	ErrVersion = errors.New("segment format version is not supported")
	// ErrRange: positions that the segment does not hold.
	ErrRange = errors.New("range is outside of the segment")

	// ErrEmpty: [Writer.Finish] without a byte appended.
	ErrEmpty = errors.New("segment has no bytes")
	// ErrUnfinishedMessage: [Writer.Finish] in the middle of a JSON message.
	ErrUnfinishedMessage = errors.New("segment ends inside a message")
	// ErrTooLarge: a message of more than [MaxFrameContent] bytes, or more than
	// [MaxFrames] frames.
	ErrTooLarge = errors.New("segment exceeds a limit of the format")
	// ErrFull: [Writer.Begin] of a range for which the object has no room.
	ErrFull = errors.New("segment has no room for another range")
	// ErrMixed: [Writer.Begin] of a range of another store, bucket or content mode.
	ErrMixed = errors.New("ranges of one segment have one store, bucket and mode")
	// ErrFinished: a [Writer] was used after Finish or Abort.
	ErrFinished = errors.New("segment writer is finished")
)

// ShortTailError says that a suffix of the object does not reach back to the
// beginning of its descriptor.
type ShortTailError struct {
	// Need is the length of the suffix to try next, in bytes. It is longer than
	// the one given, at most the size of the object and at most [MaxTail].
	Need int64
}

func (e *ShortTailError) Error() string {
	return fmt.Sprintf("suffix is too short, %d bytes are needed", e.Need)
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}
