package stream

import "time"

// MaxTTL bounds a sliding time to live, in seconds: its milliseconds stay exact
// in JavaScript.
const MaxTTL = MaxProducerNumber / 1000

// Lifetime is how long a stream was configured to live (B§5.1). At most one of
// its two kinds is set; the zero Lifetime is for ever.
type Lifetime struct {
	// Sliding: the stream ends when it has not been used for TTL seconds.
	Sliding bool
	TTL     uint64
	// At is the instant at which the stream ends, whatever happens. Zero: unset.
	At time.Time
}

// Equal reports whether two lifetimes were configured alike. Instants are
// compared, not their spelling.
func (l Lifetime) Equal(m Lifetime) bool {
	return l.Sliding == m.Sliding && l.TTL == m.TTL && l.At.Equal(m.At)
}
