package stream

import (
	"fmt"
	"strconv"
)

// ID names one incarnation of a stream: a name that is deleted and created again
// gets another. It is never reused. The upper 16 bits are a frozen hash of the
// name, so that the key space can be cut into contiguous slots; the rest is random.
type ID uint64

// NewID builds the incarnation of a name from 48 bits of randomness.
func NewID(n Name, random uint64) ID {
	return ID(uint64(n.slot())<<48 | random&(1<<48-1))
}

// String returns 16 lower-case hexadecimal digits.
func (id ID) String() string { return fmt.Sprintf("%016x", uint64(id)) }

// ParseID is the inverse of [ID.String].
func ParseID(s string) (ID, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("parse incarnation %q: want 16 hexadecimal digits", s)
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("parse incarnation %q: want 16 hexadecimal digits", s)
	}
	return ID(v), nil
}
