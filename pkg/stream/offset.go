package stream

import "fmt"

// A printed offset is two fields of offsetDigits with one character between them.
const (
	offsetDigits = 16
	offsetLen    = 2*offsetDigits + 1
)

// maxOffsetField is the largest value of 16 decimal digits.
const maxOffsetField = 9_999_999_999_999_999

// Offset is a position in one life of a stream (B§8). Printed it is
// "{life}_{position}", each 16 zero-padded decimal digits, so that offsets of one
// stream sort as text the way their positions do.
//
// The life is when the stream was created, in milliseconds of a clock that never
// repeats a value; a fork keeps its source's. The position counts stored bytes.
// The zero Offset means the beginning of any stream.
type Offset struct {
	Life     uint64
	Position uint64
}

// String returns the token that clients see.
func (o Offset) String() string {
	if o.Life > maxOffsetField || o.Position > maxOffsetField {
		return fmt.Sprintf("%d_%d", o.Life, o.Position) // of no stream
	}
	var b [offsetLen]byte
	putDigits(b[:offsetDigits], o.Life)
	b[offsetDigits] = '_'
	putDigits(b[offsetDigits+1:], o.Position)
	return string(b[:])
}

// putDigits fills b with the last digits of n.
func putDigits(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

// IsZero reports whether o is the all-zero token, which names the beginning of
// any stream.
func (o Offset) IsZero() bool { return o == Offset{} }

// ParseOffset accepts exactly what [Offset.String] prints. Any other spelling is
// [ErrOffsetMalformed].
func ParseOffset(s string) (Offset, error) {
	if len(s) != offsetLen || s[16] != '_' {
		return Offset{}, ErrOffsetMalformed
	}
	life, ok1 := parseDigits(s[:16])
	pos, ok2 := parseDigits(s[17:])
	if !ok1 || !ok2 {
		return Offset{}, ErrOffsetMalformed
	}
	return Offset{Life: life, Position: pos}, nil
}

func parseDigits(s string) (uint64, bool) {
	var v uint64
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		v = v*10 + uint64(c)
	}
	return v, true
}

// Start says where a read begins: at the beginning, at the tail of the moment, or
// at an offset. The zero Start is the beginning.
type Start struct {
	kind   startKind
	offset Offset
}

type startKind uint8

const (
	startBeginning startKind = iota
	startNow
	startOffset
)

// Beginning is the start of a read from the first byte ("-1", or no offset).
var Beginning = Start{}

// Now is the start of a read from the tail of the moment ("now").
var Now = Start{kind: startNow}

// At is the start of a read from an offset.
func At(o Offset) Start {
	if o.IsZero() {
		return Beginning
	}
	return Start{kind: startOffset, offset: o}
}

// ParseStart accepts "-1", "now" and offsets (B§8); nothing is trimmed. Errors:
// [ErrOffsetMalformed].
func ParseStart(s string) (Start, error) {
	switch s {
	case "-1":
		return Beginning, nil
	case "now":
		return Now, nil
	}
	o, err := ParseOffset(s)
	if err != nil {
		return Start{}, err
	}
	return At(o), nil
}

// IsNow reports whether the read begins at the tail.
func (s Start) IsNow() bool { return s.kind == startNow }

// Position resolves the start against one life of a stream whose tail is given.
// Errors: [ErrOffsetOtherLife], [ErrOffsetPastTail].
func (s Start) Position(life, tail uint64) (uint64, error) {
	switch s.kind {
	case startNow:
		return tail, nil
	case startOffset:
		return s.offset.In(life, tail)
	}
	return 0, nil
}

// In resolves an offset against one life of a stream whose tail is given; the
// zero offset is position 0 of any. Errors: [ErrOffsetOtherLife],
// [ErrOffsetPastTail].
func (o Offset) In(life, tail uint64) (uint64, error) {
	switch {
	case o.IsZero():
		return 0, nil
	case o.Position > tail && o.Life >= maxOffsetField:
		return 0, ErrOffsetPastTail
	case o.Life != life:
		return 0, ErrOffsetOtherLife
	case o.Position > tail:
		return 0, ErrOffsetPastTail
	}
	return o.Position, nil
}
