package verify

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"github.com/cockroachdb/pebble/v2"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// maxProblems bounds what is told of one object.
const maxProblems = 10

// content reads all frames of an object: each must have its checksum, messages must be
// whole, and what the hot tier has too must be the same.
func (r *run) content(in io.Reader, n *object, d *segment.Descriptor) ([]Problem, error) {
	w := walk{r: r, n: n, d: d}
	var compressed, content []byte
	for i, f := range d.Frames {
		compressed = slices.Grow(compressed[:0], int(f.Length))[:f.Length]
		if _, err := io.ReadFull(in, compressed); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				err = fmt.Errorf("%w: it ends before frame %d", blob.ErrCorrupt, i)
			}
			return nil, err
		}
		var err error
		if content, err = r.decoder.DecodeFrame(content[:0], compressed, f); err != nil {
			return nil, fmt.Errorf("frame %d: %w", i, err)
		}
		if err := w.frame(content); err != nil {
			return nil, err
		}
		if len(w.found) >= maxProblems {
			break
		}
	}
	return w.found, nil
}

// walk follows the entries of a descriptor, which tile the content, over the frames.
type walk struct {
	r     *run
	n     *object
	d     *segment.Descriptor
	entry int
	done  uint64 // bytes of the entry that were seen
	found []Problem
}

func (w *walk) frame(content []byte) error {
	for len(content) > 0 {
		e := w.d.Entries[w.entry]
		piece := content[:min(uint64(len(content)), e.To-e.From-w.done)]
		from := e.From + w.done
		if w.d.Mode == stream.JSON {
			w.messages(e, from, piece)
		}
		if err := w.compare(e, from, piece); err != nil {
			return err
		}
		content = content[len(piece):]
		if w.done += uint64(len(piece)); w.done == e.To-e.From {
			w.entry, w.done = w.entry+1, 0
		}
	}
	return nil
}

func (w *walk) report(code Code, id stream.ID, format string, args ...any) {
	w.found = append(w.found, Problem{Code: code, Stream: id, Object: w.n.key, Text: fmt.Sprintf(format, args...)})
}

// messages: a frame holds whole messages, one a line.
func (w *walk) messages(e segment.Entry, from uint64, piece []byte) {
	for len(piece) > 0 {
		end := bytes.IndexByte(piece, '\n')
		if end < 0 {
			w.report(CodeDamaged, e.Incarnation, "the message at position %d is cut", from)
			return
		}
		if !json.Valid(piece[:end]) {
			w.report(CodeDamaged, e.Incarnation, "the message at position %d is no JSON", from)
			return
		}
		piece, from = piece[end+1:], from+uint64(end)+1
	}
}

// compare compares sealed bytes with their hot copy, as far as there is one.
func (w *walk) compare(e segment.Entry, from uint64, piece []byte) error {
	s := w.r.catalog.Streams[e.Incarnation]
	to := from + uint64(len(piece))
	if s == nil || to <= s.Cut {
		return nil
	}
	if !slices.ContainsFunc(w.n.parts, func(p part) bool { return p.id == e.Incarnation && p.ref.From == e.From }) {
		return nil // the catalog means another object
	}
	values := w.r.catalog.Values[e.Incarnation]
	first := sort.Search(len(values), func(i int) bool { return values[i].To > max(from, s.Cut) })
	for _, v := range values[first:] {
		if v.From >= to {
			break
		}
		same, err := w.sameAs(e.Incarnation, v, from, piece)
		if err != nil {
			return err
		}
		if !same {
			w.report(CodeDiffers, e.Incarnation, "its bytes are not those of the hot tier, at or after position %d", max(from, v.From))
			return nil
		}
	}
	return nil
}

// sameAs compares the bytes that a hot value and a piece from a position have in common.
func (w *walk) sameAs(id stream.ID, v Value, from uint64, piece []byte) (bool, error) {
	key := binary.BigEndian.AppendUint64([]byte{'d'}, uint64(id))
	key = binary.BigEndian.AppendUint64(key, v.From)
	hot, release := w.r.State()
	defer release()
	value, closer, err := hot.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return w.r.InUse, nil // it has been given up meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("read store: %w", err)
	}
	defer closer.Close()
	payload := value[min(len(value), valueHeader):]
	start, end := max(from, v.From), min(from+uint64(len(piece)), v.To)
	if end-v.From > uint64(len(payload)) {
		return false, nil
	}
	return bytes.Equal(payload[start-v.From:end-v.From], piece[start-from:end-from]), nil
}

// valueHeader is what precedes the payload of a data value: version and time.
const valueHeader = 1 + 8
