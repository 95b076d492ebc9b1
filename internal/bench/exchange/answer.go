package exchange

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Answer is what a measurement looks at of an answer.
type Answer struct {
	Status   int
	Next     []byte // Stream-Next-Offset
	UpToDate bool   // Stream-Up-To-Date
	Cursor   []byte // Stream-Cursor
	Body     int64  // bytes of the body that were read
	Closes   bool   // the server closes the connection
	Header   []byte // the lines of the header, as they came

	length  int64
	chunked bool
}

// OK reports whether the status is one of success.
func (a *Answer) OK() bool { return a.Status/100 == 2 }

// read reads a header.
func (a *Answer) read(in *bufio.Reader) error {
	*a = Answer{Next: a.Next[:0], Cursor: a.Cursor[:0], Header: a.Header[:0], length: -1}
	line, err := readLine(in)
	if err != nil {
		return err
	}
	const version = "HTTP/1.1 "
	if len(line) < len(version)+3 || string(line[:len(version)]) != version {
		return fmt.Errorf("%w: it begins with %q", ErrAnswer, line)
	}
	if a.Status, err = strconv.Atoi(string(line[len(version) : len(version)+3])); err != nil {
		return fmt.Errorf("%w: it begins with %q", ErrAnswer, line)
	}
	for {
		if line, err = readLine(in); err != nil {
			return err
		}
		if len(line) == 0 {
			break
		}
		a.Header = append(append(a.Header, line...), '\n')
		i := bytes.IndexByte(line, ':')
		if i < 0 {
			return fmt.Errorf("%w: header line %q", ErrAnswer, line)
		}
		if err := a.field(line[:i], bytes.TrimSpace(line[i+1:])); err != nil {
			return err
		}
	}
	switch {
	case a.Status == 204 || a.Status == 304:
		a.length = 0
	case a.length < 0 && !a.chunked:
		return fmt.Errorf("%w: it does not say how long it is", ErrAnswer)
	}
	return nil
}

func (a *Answer) field(name, value []byte) (err error) {
	// Names of the same length are few: so most lines cost a comparison of lengths.
	is := func(n string) bool { return len(name) == len(n) && bytes.EqualFold(name, []byte(n)) }
	switch {
	case is("Content-Length"):
		if a.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || a.length < 0 {
			return fmt.Errorf("%w: length %q", ErrAnswer, value)
		}
	case is("Transfer-Encoding"):
		a.chunked = bytes.EqualFold(value, []byte("chunked"))
	case is("Connection"):
		a.Closes = bytes.EqualFold(value, []byte("close"))
	case is("Stream-Next-Offset"):
		a.Next = append(a.Next, value...)
	case is("Stream-Cursor"):
		a.Cursor = append(a.Cursor, value...)
	case is("Stream-Up-To-Date"):
		a.UpToDate = string(value) == "true"
	}
	return nil
}

// readLine returns a line without its end. It is valid until the next read.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// chunk returns the length of the chunk that comes; 0 for the last one.
func chunk(in *bufio.Reader) (uint64, error) {
	line, err := readLine(in)
	if err != nil {
		return 0, err
	}
	size, _, _ := bytes.Cut(line, []byte(";"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 40)
	if err != nil {
		return 0, fmt.Errorf("%w: chunk of %q bytes", ErrAnswer, size)
	}
	return n, nil
}

// lineEnd reads what is behind a chunk. The servers that are measured send no trailers.
func lineEnd(in *bufio.Reader) error {
	line, err := readLine(in)
	if err == nil && len(line) > 0 {
		err = fmt.Errorf("%w: %q behind a chunk", ErrAnswer, line)
	}
	return err
}
