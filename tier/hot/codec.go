package hot

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errRecord means that a stored value does not have the form this release writes.
var errRecord = errors.New("malformed record")

// decoder takes a value apart; the first fault sticks in err.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errRecord
	}
	d.b = nil
}

func (d *decoder) version(want byte) { d.versions(want, want) }

// versions takes a version within bounds.
func (d *decoder) versions(from, to byte) (v byte) {
	switch {
	case len(d.b) == 0:
		d.fail()
	case d.b[0] < from || d.b[0] > to:
		d.err = fmt.Errorf("record version %d, this release reads %d", d.b[0], to)
		d.b = nil
	default:
		v = d.b[0]
		d.b = d.b[1:]
	}
	return v
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// uint64 takes eight bytes, big-endian: what is random would be longer as a varint.
func (d *decoder) uint64() uint64 {
	if len(d.b) < 8 {
		d.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(d.b)
	d.b = d.b[8:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) string() string {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return ""
	}
	v := string(d.b[:n])
	d.b = d.b[n:]
	return v
}

// finish returns the first fault, or one if bytes are left over.
func (d *decoder) finish() error {
	if d.err == nil && len(d.b) != 0 {
		d.fail()
	}
	return d.err
}

func appendString(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
