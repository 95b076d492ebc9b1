package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"firn/pkg/stream"
)

// Meta identifies a stream whose bytes an object holds, and where they begin.
type Meta struct {
	// Store is the id of the writing store, 1 to [MaxStore] bytes.
	Store       string
	Name        stream.Name
	Incarnation stream.ID
	// Life is that of the stream's offsets.
	Life        uint64
	Mode        stream.Mode
	ContentType string
	// CreatedMs is when the stream was created, in milliseconds since 1970.
	CreatedMs uint64
	// From is the position of the first byte; in JSON mode a message boundary.
	From uint64
}

// Writer builds one object in memory. It ends with [Writer.Finish] or
// [Writer.Abort], and is used by one goroutine at a time.
type Writer struct {
	enc  *Encoder
	pack pack
	// to is the position after the last byte of the entry that is being written.
	to     uint64
	out    []byte
	frames []Frame
	err    error // of the first call that failed; the writer is useless after it

	// The frame that is being filled.
	content []byte
	whole   int    // JSON: bytes of content that are whole messages
	firstMs uint64 // when content[0] was appended
	restMs  uint64 // JSON: when content[whole] was appended
}

// NewWriter begins an object, and in it the range of a stream. Nothing of m is
// checked before [Writer.Finish].
func (e *Encoder) NewWriter(m Meta) *Writer {
	return &Writer{enc: e, pack: newPack(m), to: m.From, content: e.contents.get(), out: e.outputs.get()}
}

// Begin ends the range that is being written and begins one of another stream.
// Ranges share frames: the cuts are those of their bytes in a row.
//
// Errors: [ErrMixed], [ErrFull], and for the range before [ErrEmpty] and
// [ErrUnfinishedMessage]. They leave the writer as it was; [ErrFinished] and those
// of an Append before do not.
func (w *Writer) Begin(m Meta) error {
	if w.err != nil {
		return w.err
	}
	if err := w.ended(); err != nil {
		return err
	}
	if err := w.pack.begin(m, w.to); err != nil {
		return err
	}
	w.to = m.From
	return nil
}

// ended returns why the range that is being written cannot end here, nil if it can.
func (w *Writer) ended() error {
	switch {
	case w.to == w.pack.last().From:
		return ErrEmpty
	case w.pack.d.Mode == stream.JSON && w.whole < len(w.content):
		return ErrUnfinishedMessage
	}
	return nil
}

// Append adds the next stored bytes of the stream that was begun last, appended there at timeMs
// (milliseconds since 1970). They may be chunked in any way; data is not kept.
//
// Errors: [ErrTooLarge], [ErrFinished]. After an error only Abort makes sense.
func (w *Writer) Append(data []byte, timeMs uint64) error {
	if w.err != nil {
		return w.err
	}
	if uint64(len(data)) > math.MaxUint64-w.to {
		w.err = fmt.Errorf("%w: position %d plus %d bytes", ErrTooLarge, w.to, len(data))
		return w.err
	}
	w.to += uint64(len(data))
	for len(data) > 0 && w.err == nil {
		if w.pack.d.Mode == stream.JSON {
			data = w.fillMessages(data, timeMs)
		} else {
			data = w.fillBytes(data, timeMs)
		}
	}
	return w.err
}

// fillBytes takes what the frame has room for and returns the rest. A full frame
// is cut when there is more: the cuts do not depend on how data is chunked.
func (w *Writer) fillBytes(data []byte, timeMs uint64) []byte {
	if len(w.content) == w.enc.frameBytes {
		w.cut(len(w.content))
	}
	n := min(len(data), w.enc.frameBytes-len(w.content))
	w.take(data[:n], timeMs)
	return data[n:]
}

// fillMessages is fillBytes for messages: a frame is cut when the next one does
// not fit. A message that is larger than a frame gets one of its own.
func (w *Writer) fillMessages(data []byte, timeMs uint64) []byte {
	room := w.enc.frameBytes - len(w.content) // negative inside a large message
	if len(data) <= room {
		w.takeMessages(data, timeMs)
		return nil
	}
	if i := bytes.LastIndexByte(data[:max(room, 0)], '\n'); i >= 0 {
		w.takeMessages(data[:i+1], timeMs)
		return data[i+1:]
	}
	if w.whole > 0 {
		w.cut(w.whole)
		return data
	}
	n := bytes.IndexByte(data, '\n') + 1
	if n == 0 {
		n = len(data)
	}
	if len(w.content)+n > MaxFrameContent {
		w.err = fmt.Errorf("%w: message of more than %d bytes", ErrTooLarge, MaxFrameContent)
		return nil
	}
	w.takeMessages(data[:n], timeMs)
	return data[n:]
}

func (w *Writer) takeMessages(data []byte, timeMs uint64) {
	if w.whole == len(w.content) {
		w.restMs = timeMs
	}
	before := len(w.content)
	w.take(data, timeMs)
	if i := bytes.LastIndexByte(data, '\n'); i >= 0 {
		w.whole = before + i + 1
		w.restMs = timeMs
	}
}

func (w *Writer) take(data []byte, timeMs uint64) {
	if len(w.content) == 0 {
		w.firstMs = timeMs
	}
	w.content = append(w.content, data...)
}

// cut compresses the first n bytes of content into a frame and keeps the rest.
func (w *Writer) cut(n int) {
	if len(w.frames) == MaxFrames {
		w.err = fmt.Errorf("%w: more than %d frames", ErrTooLarge, MaxFrames)
		return
	}
	start := len(w.out)
	w.out = w.enc.zstd.EncodeAll(w.content[:n], w.out)
	w.frames = append(w.frames, Frame{
		Length:  uint32(len(w.out) - start),
		Content: uint32(n),
		CRC:     checksum(w.out[start:]),
		TimeMs:  w.firstMs,
	})
	w.content = w.content[:copy(w.content, w.content[n:])]
	w.whole = 0
	w.firstMs = w.restMs
}

// Sealed is a finished object.
type Sealed struct {
	// Bytes are the whole object.
	Bytes []byte
	// Refs are its ranges in the order in which they were begun; [Sealed.Name] fills
	// in Object.
	Refs []Ref

	enc *Encoder
}

// Name sets the key of the object in all refs.
func (s *Sealed) Name(object string) {
	for i := range s.Refs {
		s.Refs[i].Object = object
	}
}

// TailBytes is the size of the descriptor and the seek table: with a suffix of it
// [ParseTail] needs no second one.
func (s *Sealed) TailBytes() int64 {
	last := &s.Refs[len(s.Refs)-1]
	return int64(len(s.Bytes)) - int64(last.Offset+last.Length)
}

// Release gives Bytes back for the next writer. It is optional; nobody may look
// at them afterwards.
func (s *Sealed) Release() {
	s.enc.outputs.put(s.Bytes)
	s.Bytes = nil
}

// Finish completes the object. Errors: [ErrEmpty], [ErrUnfinishedMessage],
// [ErrTooLarge], [ErrFinished], and a Meta that the format cannot hold. The writer
// is finished in any case.
func (w *Writer) Finish() (*Sealed, error) {
	defer w.Abort()
	if w.err != nil {
		return nil, w.err
	}
	if err := w.ended(); err != nil {
		return nil, err
	}
	if len(w.content) > 0 {
		w.cut(len(w.content))
	}
	if w.err != nil {
		return nil, w.err
	}
	d := w.pack.finish(w.to, w.frames)
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("finish segment: %w", err)
	}
	frames := len(w.out)
	w.out = appendDescriptor(w.out, d)
	w.out = appendSeekTable(w.out, d.Frames, len(w.out)-frames)
	s := &Sealed{Bytes: w.out, Refs: d.Refs(""), enc: w.enc}
	w.out = nil // it is the caller's now
	return s, nil
}

// Abort gives the segment up. It does nothing after Finish.
func (w *Writer) Abort() {
	if errors.Is(w.err, ErrFinished) {
		return
	}
	w.enc.contents.put(w.content)
	w.enc.outputs.put(w.out)
	w.content, w.out, w.frames = nil, nil, nil
	w.err = ErrFinished
}
