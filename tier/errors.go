package tier

import "errors"

var (
	// errFull ends a walk over hot values: no more of them fit.
	errFull = errors.New("bootstrap is full")
	// errOutgrown: the stream has more bytes than memory was reserved for.
	errOutgrown = errors.New("stream has outgrown the memory reserved")
)
