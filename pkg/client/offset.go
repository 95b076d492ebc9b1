package client

// Offset is a position in a stream, as its server spells it (B§8). It is opaque, but
// offsets of one stream sort as text the way their positions do. The empty Offset
// means [Beginning].
type Offset string

const (
	// Beginning is before the first byte.
	Beginning Offset = "-1"
	// Now is the tail of the moment.
	Now Offset = "now"
)
