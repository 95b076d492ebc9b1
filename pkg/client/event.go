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
	line  []byte // reused
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
		line, err := e.read(e.limit - len(ev.data))
		if err != nil {
			return event{}, err
		}
		// A lone CR ends a line, too.
		for {
			i := bytes.IndexByte(line, '\r')
			rest := line
			if i >= 0 {
				line, rest = line[:i], line[i+1:]
			}
			switch {
			case len(line) == 0 && lines > 0:
				return ev, nil
			case len(line) == 0:
				ev.name = ""
			default:
				lines += ev.field(line, lines)
			}
			if i < 0 {
				break
			}
			line = rest
		}
	}
}

// field takes a line, and returns 1 if it was one of data.
func (ev *event) field(line []byte, lines int) int {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "event":
		ev.name = string(value)
	case "data":
		if lines > 0 {
			ev.data = append(ev.data, '\n')
		}
		ev.data = append(ev.data, value...)
		return 1
	}
	return 0
}

// read returns the next line, without its LF or CRLF. It is valid until the next call.
func (e *eventReader) read(limit int) ([]byte, error) {
	e.line = e.line[:0]
	for {
		piece, err := e.r.ReadSlice('\n')
		if len(e.line)+len(piece) > limit+len("data: \r\n") {
			return nil, fmt.Errorf("%w: an event of more than %d bytes", ErrAnswer, e.limit)
		}
		switch {
		case err == bufio.ErrBufferFull:
			e.line = append(e.line, piece...)
			continue
		case err != nil:
			return nil, err
		case len(e.line) > 0:
			piece = append(e.line, piece...)
			e.line = piece
		}
		piece = piece[:len(piece)-1]
		return bytes.TrimSuffix(piece, []byte{'\r'}), nil
	}
}
