package segment

import "fmt"

// Span is what has to be read of an object for a range of positions.
type Span struct {
	// Offset and Length are one byte range of the object that holds all parts,
	// one after another and nothing else.
	Offset, Length uint64
	// Parts are the frames in order; there is at least one.
	Parts []Part
}

// Part is a frame and the positions that are wanted of it.
type Part struct {
	Frame
	// Offset is where the compressed frame begins in the object.
	Offset uint64
	// From and To are the wanted positions, From < To.
	From, To uint64
	// Skip is how many bytes of the frame's content precede From.
	Skip uint64
}

// Cut returns the wanted bytes of the frame's decoded content, not a copy.
func (p Part) Cut(content []byte) []byte {
	return content[p.Skip : p.Skip+p.To-p.From : p.Skip+p.To-p.From]
}

// Span returns the frames that hold the positions [from,to). Errors: [ErrRange]
// if the range is empty or not wholly inside of [r.From,r.To).
func (r *Ref) Span(from, to uint64) (Span, error) {
	if from < r.From || to > r.To || from >= to {
		return Span{}, fmt.Errorf("%w: want [%d,%d), have [%d,%d)", ErrRange, from, to, r.From, r.To)
	}
	// lo and hi count content bytes from the beginning of the first frame. A
	// position of that beginning may not exist: with a skip it can be negative.
	lo, hi := r.Skip+from-r.From, r.Skip+to-r.From
	var s Span
	var begin uint64
	offset := r.Offset
	for _, f := range r.Frames {
		end := begin + uint64(f.Content)
		if begin >= hi {
			break
		}
		if end > lo {
			a, b := max(lo, begin), min(hi, end)
			s.Parts = append(s.Parts, Part{Frame: f, Offset: offset, From: from + a - lo, To: from + b - lo, Skip: a - begin})
			s.Length += uint64(f.Length)
		}
		begin = end
		offset += uint64(f.Length)
	}
	s.Offset = s.Parts[0].Offset
	return s, nil
}
