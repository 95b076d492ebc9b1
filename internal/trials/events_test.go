package trials_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// events reads an event stream by the parsing rules of the HTML standard.
type events struct {
	t      testing.TB
	header http.Header
	in     *bufio.Reader
	leave  func()
	// comments counts the lines that are comments.
	comments int
	lf       bool // a CR has ended the last line: an LF after it belongs to it
}

type event struct{ name, data string }

// control is the data of a control event.
type control struct {
	StreamNextOffset string
	StreamCursor     string
	UpToDate         bool
	StreamClosed     bool
}

// open starts to read events; it is for any goroutine.
func (c *client) open(path string) (*events, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(scaled(1, 20))*patience)
	res, err := c.begin(ctx, "GET", path, "")
	if err != nil {
		cancel()
		return nil, err
	}
	leave := func() { cancel(); res.Body.Close() }
	if res.StatusCode != 200 {
		leave()
		return nil, fmt.Errorf("GET %s: %s", path, res.Status)
	}
	return &events{t: c.t, header: res.Header, in: bufio.NewReader(res.Body), leave: leave}, nil
}

// subscribe opens an event stream and leaves it when the test ends.
func (c *client) subscribe(path string) *events {
	c.t.Helper()
	e, err := c.open(path)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(e.leave)
	return e
}

// line reads up to a CR, an LF or a CRLF.
func (e *events) line() (string, error) {
	var b []byte
	for {
		c, err := e.in.ReadByte()
		if err != nil {
			return string(b), err
		}
		skip := e.lf && c == '\n'
		e.lf = c == '\r'
		switch {
		case skip:
		case c == '\r' || c == '\n':
			return string(b), nil
		default:
			b = append(b, c)
		}
	}
}

// next returns the next event, io.EOF when the stream ended between two.
func (e *events) next() (event, error) {
	var ev event
	var data []string
	for lines := 0; ; lines++ {
		line, err := e.line()
		if err == io.EOF && (lines > 0 || line != "") {
			return ev, fmt.Errorf("ended within an event: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return ev, err
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && data == nil:
			ev, lines = event{}, -1
		case line == "":
			ev.data = strings.Join(data, "\n")
			return ev, nil
		case field == "":
			e.comments++
		case field == "event":
			ev.name = value
		case field == "data":
			data = append(data, value)
		default:
			return ev, fmt.Errorf("strange line %q", line)
		}
	}
}

// page returns the next data event with its control event, or a control event alone.
func (e *events) page() (data string, c control, err error) {
	ev, err := e.next()
	if err == nil && ev.name == "data" {
		data = ev.data
		ev, err = e.next()
	}
	if err != nil {
		return data, c, err
	}
	if ev.name != "control" {
		return data, c, fmt.Errorf("got event %q, want a control event", ev)
	}
	return data, c, json.Unmarshal([]byte(ev.data), &c)
}

// must is page for the test's goroutine.
func (e *events) must() (string, control) {
	e.t.Helper()
	data, c, err := e.page()
	if err != nil {
		e.t.Fatalf("event stream: %v after %q", err, data)
	}
	return data, c
}

// ends fails unless the stream has ended.
func (e *events) ends() {
	e.t.Helper()
	if ev, err := e.next(); !errors.Is(err, io.EOF) {
		e.t.Errorf("event stream goes on: %q, %v", ev, err)
	}
}
