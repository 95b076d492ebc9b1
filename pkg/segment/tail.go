package segment

import (
	"errors"
	"fmt"
	"io"
)

const (
	// TailHint is a suffix length, in bytes, that holds the tail of nearly every
	// object: with frames of [DefaultFrameBytes], of one with 140 MiB of content.
	TailHint = 16 << 10
	// MaxTail bounds descriptor and seek table together, in bytes.
	MaxTail = 16 << 20
)

// ParseTail reads the descriptor from the last bytes of an object and compares it
// with the seek table behind it. objectSize is in bytes.
//
// Errors: [*ShortTailError] if the suffix has to be longer, [ErrVersion],
// [ErrCorrupt]. The frames themselves are not looked at; see [Decoder.Verify].
func ParseTail(suffix []byte, objectSize int64) (*Descriptor, error) {
	have := int64(len(suffix))
	if have > objectSize {
		return nil, corrupt("suffix of %d bytes is longer than the object, %d", have, objectSize)
	}
	if have < seekEntry+seekFooter {
		if have == objectSize {
			return nil, corrupt("object of %d bytes is cut short", objectSize)
		}
		return nil, &ShortTailError{Need: min(objectSize, TailHint)}
	}
	end, err := parseSeekTableEnd(suffix)
	if err != nil {
		return nil, err
	}
	need := end.table + end.descriptor
	if need >= objectSize || need > MaxTail {
		return nil, corrupt("descriptor and seek table of %d bytes do not fit", need)
	}
	if have < need {
		return nil, &ShortTailError{Need: need}
	}
	tail := suffix[have-need:]
	d, err := parseDescriptor(tail[:end.descriptor])
	if err != nil {
		return nil, err
	}
	if err := checkSeekTable(tail[end.descriptor:], d.Frames); err != nil {
		return nil, err
	}
	length, _, err := checkFrames(d.Frames)
	if err != nil {
		return nil, corrupt("descriptor: %v", err)
	}
	if length != uint64(objectSize-need) {
		return nil, corrupt("frames have %d bytes, the object has room for %d", length, objectSize-need)
	}
	return d, nil
}

// ReadTail is [ParseTail] for an object that can be read at will. It reads
// [TailHint] bytes, and once more if that was too short. Errors are those of
// ParseTail and of r.
func ReadTail(r io.ReaderAt, objectSize int64) (*Descriptor, error) {
	need := min(objectSize, TailHint)
	for {
		suffix := make([]byte, max(need, 0))
		if err := readFull(r, suffix, objectSize-need); err != nil {
			return nil, fmt.Errorf("read tail: %w", err)
		}
		d, err := ParseTail(suffix, objectSize)
		if short, ok := errors.AsType[*ShortTailError](err); ok {
			need = short.Need
			continue
		}
		return d, err
	}
}

// readFull fills b from offset. An object that ends before is corrupt: somebody
// said that it is longer.
func readFull(r io.ReaderAt, b []byte, offset int64) error {
	n, err := r.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return corrupt("object ends at byte %d", offset+int64(n))
	}
	return err
}
