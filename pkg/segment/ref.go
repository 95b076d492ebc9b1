package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

const (
	// MaxObjectKey bounds the name of an object, in bytes (the limit of S3).
	MaxObjectKey = 1024

	refVersion = 1
	// minRefFrame is what one frame takes at least in an encoded Ref.
	minRefFrame = 1 + 1 + 4 + 1
)

// Ref names the bytes [From,To) of one stream inside an object. A catalog keeps
// one for each segment; with it a read needs nothing else of the object than the
// frames it wants.
type Ref struct {
	// Object is the key of the object. [Writer.Finish] leaves it empty.
	Object string
	// Offset and Length are the byte range of the frames in the object.
	Offset, Length uint64
	// Skip is how many bytes of the first frame's content precede From. It is 0
	// unless the frame is shared with another stream.
	Skip uint64
	// From and To are positions in the stream.
	From, To uint64
	// Frames are the frames that hold the range, each at least one byte of it.
	Frames []Frame
}

// check holds what every Ref obeys; Object may be empty.
func (r *Ref) check() error {
	if len(r.Object) > MaxObjectKey {
		return fmt.Errorf("object key of %d bytes exceeds the limit of %d", len(r.Object), MaxObjectKey)
	}
	length, content, err := checkFrames(r.Frames)
	if err != nil {
		return err
	}
	last := uint64(r.Frames[len(r.Frames)-1].Content)
	size := r.To - r.From
	switch {
	case r.From >= r.To:
		return fmt.Errorf("range [%d,%d) is empty", r.From, r.To)
	case r.Length != length:
		return fmt.Errorf("length %d is not that of the frames, %d", r.Length, length)
	case r.Offset > math.MaxInt64-length:
		return fmt.Errorf("offset %d is beyond any object", r.Offset)
	case r.Skip >= uint64(r.Frames[0].Content):
		return fmt.Errorf("skip %d passes the first frame", r.Skip)
	case size > content || r.Skip+size > content || r.Skip+size <= content-last:
		return fmt.Errorf("range [%d,%d) does not fit its frames", r.From, r.To)
	}
	return nil
}

// AppendBinary appends the encoding of r to b (docs/format.md, "Ref"). It refuses
// a Ref that [ParseRef] would not take.
func (r *Ref) AppendBinary(b []byte) ([]byte, error) {
	if r.Object == "" {
		return nil, errors.New("encode ref: no object key")
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("encode ref: %w", err)
	}
	b = append(b, refVersion)
	b = binary.AppendUvarint(b, uint64(len(r.Object)))
	b = append(b, r.Object...)
	b = binary.AppendUvarint(b, r.Offset)
	b = binary.AppendUvarint(b, r.Skip)
	b = binary.AppendUvarint(b, r.From)
	b = binary.AppendUvarint(b, r.To-r.From)
	b = binary.AppendUvarint(b, uint64(len(r.Frames)))
	var last uint64
	for _, f := range r.Frames {
		b = binary.AppendUvarint(b, uint64(f.Length))
		b = binary.AppendUvarint(b, uint64(f.Content))
		b = binary.BigEndian.AppendUint32(b, f.CRC)
		// A difference: frames of one segment are close in time, and a clock that
		// was set back makes it negative.
		b = binary.AppendVarint(b, int64(f.TimeMs-last))
		last = f.TimeMs
	}
	return b, nil
}

// ParseRef is the inverse of [Ref.AppendBinary]; the whole of b is one Ref. Memory
// is bounded by a small multiple of len(b). Errors: [ErrVersion], [ErrCorrupt].
func ParseRef(b []byte) (Ref, error) {
	if len(b) == 0 {
		return Ref{}, corrupt("ref is empty")
	}
	if b[0] != refVersion {
		return Ref{}, fmt.Errorf("%w: ref has version %d, this release reads %d", ErrVersion, b[0], refVersion)
	}
	in := reader{b: b[1:]}
	var r Ref
	r.Object = string(in.take(in.uvarint()))
	r.Offset = in.uvarint()
	r.Skip = in.uvarint()
	r.From = in.uvarint()
	size := in.uvarint()
	count := in.uvarint()
	if count > uint64(len(in.b))/minRefFrame {
		in.failed = true
	}
	if in.failed {
		return Ref{}, corrupt("ref is cut short or malformed")
	}
	r.To = r.From + size // an overflow makes To < From, which check refuses
	r.Frames = make([]Frame, count)
	var last uint64
	for i := range r.Frames {
		length, content := in.uvarint(), in.uvarint()
		if length > math.MaxUint32 || content > math.MaxUint32 {
			return Ref{}, corrupt("ref: frame %d is too large", i)
		}
		f := Frame{Length: uint32(length), Content: uint32(content), CRC: in.uint32()}
		f.TimeMs = last + uint64(in.varint())
		last = f.TimeMs
		r.Frames[i] = f
		r.Length += length
	}
	if in.failed || len(in.b) > 0 {
		return Ref{}, corrupt("ref is malformed or has trailing bytes")
	}
	if r.Object == "" {
		return Ref{}, corrupt("ref has no object key")
	}
	if err := r.check(); err != nil {
		return Ref{}, corrupt("ref: %v", err)
	}
	return r, nil
}
