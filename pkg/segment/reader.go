package segment

import "encoding/binary"

// reader takes fields off the front of b. The first one that is not there sets
// failed, and from then on all are zero: a parser looks once, where it is about
// to believe a count, and at the end.
type reader struct {
	b      []byte
	failed bool
}

// take returns the next n bytes, not a copy.
func (r *reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.b)) {
		r.failed = true
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint8() uint8 {
	if v := r.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if v := r.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if v := r.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if v := r.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

// string16 returns a string with a 16-bit length before it.
func (r *reader) string16() string { return string(r.take(uint64(r.uint16()))) }

// uvarint takes only the shortest spelling of a number, so that equal values
// have equal encodings.
func (r *reader) uvarint() uint64 {
	if r.failed {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || n > 1 && r.b[n-1] == 0 {
		r.failed = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// varint is uvarint with the sign in the lowest bit.
func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}
