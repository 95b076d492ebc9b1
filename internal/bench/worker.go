package bench

import (
	"context"
	"fmt"
	"strconv"

	"firn/internal/bench/exchange"
)

// dialAll makes n workers with a connection each.
func dialAll(ctx context.Context, e *exchange.Endpoint, n int, with func(c *exchange.Conn, i int) Worker) ([]Worker, error) {
	workers := make([]Worker, 0, n)
	for i := range n {
		c, err := e.Dial(ctx)
		if err != nil {
			closeAll(workers)
			return nil, err
		}
		workers = append(workers, with(c, i))
	}
	return workers, nil
}

// appender appends the same body to one stream after another.
type appender struct {
	*exchange.Conn
	requests       [][]byte // by stream
	last           [][]byte // offset by stream; nil: answers are those of a limit
	at, step       int
	records, bytes int64
}

// Do appends once.
func (w *appender) Do() (records, bytes int64, err error) {
	i := w.at % len(w.requests)
	w.at += w.step
	a, err := w.Conn.Do(w.requests[i], nil)
	switch {
	case err != nil:
		return 0, 0, err
	case !a.OK():
		return 0, 0, fmt.Errorf("append: %w %d", errStatus, a.Status)
	case w.last != nil:
		// Offsets sort as they grow.
		if string(a.Next) <= string(w.last[i]) {
			return 0, 0, fmt.Errorf("append: %w: the offset goes from %q to %q", errContent, w.last[i], a.Next)
		}
		w.last[i] = append(w.last[i][:0], a.Next...)
	}
	return w.records, w.bytes, nil
}

// getter makes the same request again and again; its answer has a fixed length.
type getter struct {
	*exchange.Conn
	request []byte
	want    int64
}

// Do makes the request once.
func (w *getter) Do() (records, bytes int64, err error) {
	a, err := w.Conn.Do(w.request, nil)
	switch {
	case err != nil:
		return 0, 0, err
	case a.Status != 200:
		return 0, 0, fmt.Errorf("get: %w %d", errStatus, a.Status)
	case a.Body != w.want:
		return 0, 0, fmt.Errorf("get: %w: %d bytes instead of %d", errContent, a.Body, w.want)
	}
	return 1, a.Body, nil
}

// reader reads a whole stream, page by page, from its beginning to its tail.
type reader struct {
	*exchange.Conn
	before, after []byte // of a request, around the offset
	request       []byte
	offset        []byte
	json          bool
	want          int64
}

// newReader reads a stream of want stored bytes.
func newReader(c *exchange.Conn, e *exchange.Endpoint, id, contentType string, want int64) *reader {
	r := &reader{Conn: c, json: contentType == typeJSON, want: want}
	r.before, r.after = around(e.Request("GET", "/"+id+"?offset="+hole, nil))
	return r
}

// Do reads the stream once.
func (w *reader) Do() (records, bytes int64, err error) {
	w.offset = append(w.offset[:0], "-1"...)
	for {
		w.request = append(append(append(w.request[:0], w.before...), w.offset...), w.after...)
		a, err := w.Conn.Do(w.request, nil)
		switch {
		case err != nil:
			return 0, 0, err
		case a.Status != 200:
			return 0, 0, fmt.Errorf("read: %w %d", errStatus, a.Status)
		}
		bytes += a.Body
		records++
		if a.UpToDate {
			break
		}
		if string(a.Next) == string(w.offset) {
			return 0, 0, fmt.Errorf("read: %w: the offset stays at %q", errContent, a.Next)
		}
		w.offset = append(w.offset[:0], a.Next...)
	}
	more := int64(0)
	if w.json {
		more = records // each page is an array, with a bracket more than there are commas less
	}
	if bytes < w.want || bytes > w.want+more {
		return 0, 0, fmt.Errorf("read: %w: %d bytes instead of %d", errContent, bytes, w.want)
	}
	return records, bytes, nil
}

// creator makes streams, whose names it tells the server at the end.
type creator struct {
	*exchange.Conn
	server            *server // nil: a limit
	name              string
	before, after     []byte // of a request, around the number
	request           []byte
	first, next, step int64
}

// Close closes the connection.
func (w *creator) Close() {
	w.Conn.Close()
	for n := w.first; n < w.next && w.server != nil; n += w.step {
		w.server.note(w.name + strconv.FormatInt(n, 10))
	}
}

// Do makes one stream.
func (w *creator) Do() (records, bytes int64, err error) {
	w.request = append(w.request[:0], w.before...)
	w.request = append(strconv.AppendInt(w.request, w.next, 10), w.after...)
	w.next += w.step
	a, err := w.Conn.Do(w.request, nil)
	if err == nil && a.Status != 201 {
		err = fmt.Errorf("create: %w %d", errStatus, a.Status)
	}
	return 1, 0, err
}

// hole is what stands in a request for something that changes.
const hole = "{hole}"

// around returns what is before the hole and behind it.
func around(request []byte) (before, after []byte) {
	for i := range request {
		if string(request[i:min(len(request), i+len(hole))]) == hole {
			return request[:i], request[i+len(hole):]
		}
	}
	return request, nil
}
