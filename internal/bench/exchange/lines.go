package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"time"
)

// Lines reads the body of an answer that does not end, line by line.
type Lines struct {
	c    *Conn
	in   *bufio.Reader // of the chunks' content
	left uint64
	over bool
}

// Lines returns the lines of the body of the answer that [Conn.Begin] has returned.
func (c *Conn) Lines() *Lines {
	l := &Lines{c: c}
	l.in = bufio.NewReaderSize(l, maxLine)
	return l
}

// Next returns a line without its end, valid until the next call. Errors: io.EOF at
// the end of the body.
func (l *Lines) Next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		// A longer line than anybody sends here on purpose: its beginning is enough.
		return line, nil
	}
	if err != nil {
		if l.c.ctx.Err() != nil {
			err = l.c.ctx.Err()
		}
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

// Read takes the chunks apart.
func (l *Lines) Read(p []byte) (int, error) {
	in := l.c.in
	if !l.c.answer.chunked {
		return in.Read(p)
	}
	for l.left == 0 {
		if l.over {
			return 0, io.EOF
		}
		// Each sign of life gives the server new time.
		l.c.conn.SetReadDeadline(time.Now().Add(patience))
		n, err := chunk(in)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			l.over = true
			if err := lineEnd(in); err != nil {
				return 0, err
			}
		}
		l.left = n
	}
	n, err := in.Read(p[:min(uint64(len(p)), l.left)])
	if l.left -= uint64(n); l.left == 0 && err == nil {
		err = lineEnd(in)
	}
	return n, err
}
