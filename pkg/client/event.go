package client

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// event is one Server-Sent Event: its name, and its data lines joined by LF.
type event struct {
	name string
	data []byte
}

// eventReader parses Server-Sent Events. Comments, ids and retry times are skipped.
type eventReader struct {
	r     *bufio.Reader
	limit int    // of what is held of one event, in bytes
	long  []byte // a line that exceeds r's buffer, reused
	rest  []byte // lines that have been read, up to an LF
	more  bool   // there is a line in rest, be it empty
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next event that has data. At the end it is io.EOF; what there is of
// an event without the empty line that ends it is dropped. Errors: those of the reader,
// [ErrAnswer] for an event beyond the limit.
func (e *eventReader) next() (event, error) {
	var ev event
	for lines := 0; ; {
		line, err := e.line(e.limit - len(ev.data))
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 && lines > 0 {
			return ev, nil
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "": // a comment, or the end of an event without data
			if len(line) == 0 {
				ev.name = ""
			}
		case "event":
			ev.name = string(value)
		case "data":
			if lines++; lines > 1 {
				ev.data = append(ev.data, '\n')
			}
			ev.data = append(ev.data, value...)
		}
	}
}

// line returns the next line, which CR, LF or CRLF end. It is valid until the next call.
// A CR counts when an LF has come, which may be later.
func (e *eventReader) line(limit int) ([]byte, error) {
	if !e.more {
		var err error
		if e.rest, err = e.read(limit); err != nil {
			return nil, err
		}
	}
	var line []byte
	line, e.rest, e.more = bytes.Cut(e.rest, []byte{'\r'})
	return line, nil
}

// read returns what there is up to the next LF, without that or a CRLF.
func (e *eventReader) read(limit int) ([]byte, error) {
	e.long = e.long[:0]
	for {
		piece, err := e.r.ReadSlice('\n')
		if len(e.long)+len(piece) > limit+len("data: \r\n") {
			return nil, fmt.Errorf("%w: an event of more than %d bytes", ErrAnswer, e.limit)
		}
		if err != nil && err != bufio.ErrBufferFull {
			return nil, err
		}
		if err != nil || len(e.long) > 0 {
			e.long = append(e.long, piece...)
			piece = e.long
		}
		if err == nil {
			return bytes.TrimSuffix(piece[:len(piece)-1], []byte{'\r'}), nil
		}
	}
}
