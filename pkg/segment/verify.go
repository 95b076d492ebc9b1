package segment

import (
	"fmt"
	"io"
	"slices"

	"firn/pkg/stream"
)

// Verify reads a whole object of objectSize bytes and checks all of it: the tail,
// each frame, and that in JSON mode frames and ranges end after an LF. It returns
// the descriptor. Memory is bounded by the tail and the largest frame.
//
// Errors: those of [ReadTail] and [Decoder.DecodeFrame], wrapped.
func (d *Decoder) Verify(r io.ReaderAt, objectSize int64) (*Descriptor, error) {
	desc, err := ReadTail(r, objectSize)
	if err != nil {
		return nil, err
	}
	walk := boundaryWalk{mode: desc.Mode, entries: desc.Entries}
	var compressed, content []byte
	var offset int64
	for i, f := range desc.Frames {
		compressed = slices.Grow(compressed[:0], int(f.Length))[:f.Length]
		if err := readFull(r, compressed, offset); err != nil {
			return nil, fmt.Errorf("read frame %d: %w", i, err)
		}
		content, err = d.DecodeFrame(content[:0], compressed, f)
		if err != nil {
			return nil, fmt.Errorf("frame %d at byte %d: %w", i, offset, err)
		}
		if err := walk.frame(content); err != nil {
			return nil, fmt.Errorf("frame %d at byte %d: %w", i, offset, err)
		}
		offset += int64(f.Length)
	}
	return desc, nil
}

// boundaryWalk follows the entries of a descriptor, which tile the content, over
// the frames.
type boundaryWalk struct {
	mode    stream.Mode
	entries []Entry // those that have not ended; of the first, done bytes were seen
	done    uint64
}

// frame checks that what ends in this frame, and the frame itself, ends after an
// LF if that is the mode's boundary.
func (w *boundaryWalk) frame(content []byte) error {
	for len(content) > 0 {
		e := w.entries[0]
		n := min(uint64(len(content)), e.To-e.From-w.done)
		if w.mode == stream.JSON && content[n-1] != '\n' {
			return corrupt("message is cut at position %d of stream %q", e.From+w.done+n, e.Stream)
		}
		content = content[n:]
		w.done += n
		if w.done == e.To-e.From {
			w.entries, w.done = w.entries[1:], 0
		}
	}
	return nil
}
