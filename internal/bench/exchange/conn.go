// Package exchange makes HTTP/1.1 requests over a connection that is kept, with as little
// work as there can be: whoever measures a server on its own machine takes processor time
// away from it. Requests are bytes that were put together before; of an answer only what
// a measurement looks at is parsed. It is not a general client: it follows no redirects
// and repeats nothing.
package exchange

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ErrAnswer: what came back is not an answer in HTTP/1.1.
var ErrAnswer = errors.New("not an answer in HTTP/1.1")

const (
	// patience is how long a server may be silent.
	patience = 60 * time.Second
	// maxIdle is how long a connection is trusted that nothing was asked on. Servers
	// close those, sooner when there never was a request.
	maxIdle = 5 * time.Second
	// maxLine bounds a line of a header, and of an event.
	maxLine = 32 << 10
	// largeBuffer is for bodies that do not fit into a line's.
	largeBuffer = 256 << 10
)

// Conn is one connection, for one goroutine. It is dialled again when the server has
// said that it closes it.
type Conn struct {
	to       *Endpoint
	ctx      context.Context
	conn     net.Conn
	unhook   func() bool
	in       *bufio.Reader
	large    []byte // for bodies, made when the first one comes
	deadline time.Time
	used     time.Time // when it was dialled, or asked last
	answer   Answer
}

// Dial opens a connection. When ctx ends it is closed.
func (e *Endpoint) Dial(ctx context.Context) (*Conn, error) {
	c := &Conn{to: e, ctx: ctx}
	if err := c.dial(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Conn) dial() error {
	conn, err := c.to.connect(c.ctx)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.to, err)
	}
	c.conn, c.deadline, c.used = conn, time.Time{}, time.Now()
	c.unhook = context.AfterFunc(c.ctx, func() { conn.Close() })
	if c.in == nil {
		c.in = bufio.NewReaderSize(conn, 4<<10)
	} else {
		c.in.Reset(conn)
	}
	return nil
}

// Close ends the connection.
func (c *Conn) Close() {
	if c.conn == nil {
		return
	}
	c.unhook()
	c.conn.Close()
	c.conn = nil
}

// Do sends a request and reads the whole answer; take is given the pieces of its body,
// and may be nil. The answer is valid until the next call. A status is not an error.
func (c *Conn) Do(request []byte, take func([]byte)) (*Answer, error) {
	a, err := c.Begin(request)
	if err != nil {
		return nil, err
	}
	if err := c.drain(a, take); err != nil {
		return nil, c.broken(err)
	}
	if a.Closes {
		c.Close()
	}
	return a, nil
}

// Begin sends a request and reads the header of its answer. The body is to be read from
// [Conn.Lines], and then the connection closed.
func (c *Conn) Begin(request []byte) (*Answer, error) {
	now := time.Now()
	if c.conn != nil && now.Sub(c.used) > maxIdle {
		c.Close()
	}
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return nil, err
		}
	}
	c.used = now
	// Moving a deadline costs more than looking at the clock.
	if c.deadline.Sub(now) < patience/2 {
		c.deadline = now.Add(patience)
		c.conn.SetDeadline(c.deadline)
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, c.broken(err)
	}
	if err := c.answer.read(c.in); err != nil {
		return nil, c.broken(err)
	}
	return &c.answer, nil
}

func (c *Conn) broken(err error) error {
	c.Close()
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return fmt.Errorf("exchange with %s: %w", c.to, err)
}

// drain reads the body to its end.
func (c *Conn) drain(a *Answer, take func([]byte)) error {
	if a.chunked {
		for {
			n, err := chunk(c.in)
			if err != nil {
				return err
			}
			if err := c.pieces(a, int64(n), take); err != nil {
				return err
			}
			if err := lineEnd(c.in); err != nil {
				return err
			}
			if n == 0 {
				return nil
			}
		}
	}
	return c.pieces(a, a.length, take)
}

func (c *Conn) pieces(a *Answer, left int64, take func([]byte)) error {
	for left > 0 {
		if left > int64(c.in.Size()) && c.large == nil {
			c.large = make([]byte, largeBuffer)
		}
		var piece []byte
		var err error
		if c.large != nil {
			var n int
			n, err = c.in.Read(c.large[:min(left, largeBuffer)])
			piece = c.large[:n]
		} else if piece, err = c.in.Peek(int(left)); err == nil {
			c.in.Discard(len(piece))
		}
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if take != nil {
			take(piece)
		}
		left -= int64(len(piece))
		a.Body += int64(len(piece))
	}
	return nil
}
