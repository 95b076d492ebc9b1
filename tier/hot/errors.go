package hot

import "errors"

var (
	// ErrConflict refuses a command of the compactor whose conditions no longer
	// hold: the stream is gone, a mark has moved, an object is not intended.
	ErrConflict = errors.New("catalog has changed, the command no longer applies")
	// ErrFormat: the directory was written by a release with another format.
	ErrFormat = errors.New("unknown data format")
	// ErrDamaged: the catalog and the data disagree, or the disk does not give what
	// was written to it. A person must look.
	ErrDamaged = errors.New("hot tier is damaged")
	// ErrLocked: another process has the directory open.
	ErrLocked = errors.New("data directory is in use by another process")

	// errIDTaken asks for another random incarnation.
	errIDTaken = errors.New("incarnation is taken")
)
