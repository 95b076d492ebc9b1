package stream

import "slices"

// MaxFormer bounds the former lives that a stream remembers. Offsets of older ones
// are refused as those of any other life.
const MaxFormer = 8

// Former is a life that a stream had before it was rebuilt from a copy. Its bytes
// are the stream's up to a position; what lay behind is lost.
type Former struct {
	Life uint64
	// Upto is the highest position that an offset of this life may have.
	Upto uint64
}

// Lives are the lives of one stream, the present one and those before it. A
// position of the present life and the same position of a former one, up to its
// bound, name the same byte.
type Lives struct {
	Life   uint64
	Former []Former // oldest first
}

// Resolve is [Offset.In] for a stream that may have had other lives: an offset of a
// former one counts up to the position at which that life ended. Errors:
// [ErrOffsetOtherLife], [ErrOffsetPastTail].
func (l Lives) Resolve(o Offset, tail uint64) (uint64, error) {
	for _, f := range l.Former {
		if o.Life == f.Life && o.Position <= min(f.Upto, tail) {
			return o.Position, nil
		}
	}
	return o.In(l.Life, tail)
}

// Start is [Start.Position] with [Lives.Resolve].
func (l Lives) Start(s Start, tail uint64) (uint64, error) {
	if s.kind == startOffset {
		return l.Resolve(s.offset, tail)
	}
	return s.Position(l.Life, tail)
}

// Renew returns the lives of a stream that goes on at tail in another life. The
// oldest former one is dropped when there are too many.
func (l Lives) Renew(life, tail uint64) Lives {
	former := append(l.Clip(tail).Former, Former{Life: l.Life, Upto: tail})
	if n := len(former) - MaxFormer; n > 0 {
		former = former[n:]
	}
	return Lives{Life: life, Former: former}
}

// Clip returns the lives of a fork that leaves the stream at a position: offsets of
// former lives count up to there.
func (l Lives) Clip(pos uint64) Lives {
	l.Former = slices.Clone(l.Former)
	for i := range l.Former {
		l.Former[i].Upto = min(l.Former[i].Upto, pos)
	}
	return l
}
