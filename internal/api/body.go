package api

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Buffers come in powers of two. Those up to maxPooled are used again.
	minBuffer = 4 << 10
	maxPooled = 1 << 20
	// firstBuffer bounds what a declared length gets before bytes have come.
	firstBuffer = 64 << 10
	// discardBytes bounds what is read of a body that nobody wants, for the sake of
	// clients that look for the answer only after they have sent everything.
	discardBytes = 32 << 20
)

// bodies reads request bodies whole, in memory that is bounded for all together.
type bodies struct {
	limit    int64
	inflight int64
	idle     time.Duration

	used  atomic.Int64
	pools [9]sync.Pool // of *body with minBuffer<<i bytes
}

// body is a request body, in memory until it is released.
type body struct {
	bytes []byte
	owner *bodies
}

func newBodies(limit, inflight int64, idle time.Duration) *bodies {
	return &bodies{limit: limit, inflight: inflight, idle: idle}
}

// read takes the whole body. Errors: errEncoding, errBodyTooLarge, errBodyCut,
// errBodyTimeout, errInflight. Nothing is read, and so nothing asked for
// (RFC 9110 §10.1.1), when the header alone is reason to refuse.
func (b *bodies) read(a *answer, r *http.Request) (*body, error) { return b.readUpTo(a, r, b.limit) }

// readUpTo is read with a smaller limit.
func (b *bodies) readUpTo(a *answer, r *http.Request, limit int64) (*body, error) {
	if err := checkEncoding(r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	if r.ContentLength == 0 {
		return &body{}, nil
	}
	// One byte more than is expected, so that the end is seen without growing.
	buf, err := b.get(min(max(r.ContentLength, minBuffer-1), firstBuffer-1) + 1)
	if err != nil {
		return nil, err
	}
	in := &idleReader{a: a, body: r.Body, idle: b.idle}
	for {
		n, err := in.Read(buf.bytes[len(buf.bytes):cap(buf.bytes)])
		buf.bytes = buf.bytes[:len(buf.bytes)+n]
		switch {
		case int64(len(buf.bytes)) > limit:
			err = errBodyTooLarge
		case err == io.EOF:
			return buf, nil
		case err == nil && len(buf.bytes) == cap(buf.bytes):
			buf, err = b.grow(buf)
		}
		if err != nil {
			buf.release()
			return nil, err
		}
	}
}

// get returns an empty buffer of at least n bytes, and counts them.
func (b *bodies) get(n int64) (*body, error) {
	if n <= maxPooled {
		n = minBuffer << class(n)
	}
	if b.used.Add(n) > b.inflight {
		b.used.Add(-n)
		return nil, errInflight
	}
	if n <= maxPooled {
		if v, ok := b.pools[class(n)].Get().(*body); ok {
			return v, nil
		}
	}
	return &body{bytes: make([]byte, 0, n), owner: b}, nil
}

// grow returns a buffer of twice the size with the same content. The old one is given
// back, unless there is an error.
func (b *bodies) grow(old *body) (*body, error) {
	next, err := b.get(min(2*int64(cap(old.bytes)), max(b.limit+1, int64(cap(old.bytes))+1)))
	if err != nil {
		return old, err
	}
	next.bytes = append(next.bytes, old.bytes...)
	old.release()
	return next, nil
}

// release gives the memory back. The bytes must not be used afterwards.
func (y *body) release() {
	b := y.owner
	if b == nil {
		return
	}
	n := int64(cap(y.bytes))
	b.used.Add(-n)
	if n <= maxPooled {
		y.bytes = y.bytes[:0]
		b.pools[class(n)].Put(y)
	}
}

// class is the index of the smallest pool whose buffers hold n bytes.
func class(n int64) int {
	return max(bits.Len64(uint64(n-1))-bits.Len64(minBuffer-1), 0)
}

// discard reads what is left of a body, within bounds of size and time, so that the
// client gets its answer instead of a reset connection. A client that waits to be
// asked for its body is not asked.
func (b *bodies) discard(a *answer, r *http.Request) {
	if r.ContentLength == 0 || r.Body == nil {
		return
	}
	if expectsContinue(r) || r.ContentLength > discardBytes {
		b.abandon(a, r)
		return
	}
	a.ctl.SetReadDeadline(time.Now().Add(b.idle))
	n, err := io.Copy(io.Discard, io.LimitReader(r.Body, discardBytes))
	a.received += n
	if err != nil || n == discardBytes {
		b.abandon(a, r)
		return
	}
	a.ctl.SetReadDeadline(time.Time{})
}

// abandon gives the connection up with the response: the rest of the body is still in
// it, and the server would go on reading by itself, without a deadline.
func (b *bodies) abandon(a *answer, r *http.Request) {
	if r.ProtoMajor == 1 {
		a.Header().Set("Connection", "close")
		a.ctl.SetReadDeadline(time.Unix(1, 0))
	}
}

// minBodyRate is what a body has to bring on average, in bytes a second, once it has had
// its idle time for free. It is about what a reader has to take ([answer]).
const minBodyRate = 1 << 10

// idleReader reads a request body that may take its time but must neither stand still
// nor dribble: its buffer is memory that others wait for.
type idleReader struct {
	a        *answer
	body     io.Reader
	idle     time.Duration
	deadline time.Time     // the one in force
	waited   time.Duration // spent in reads: what the reader's own side takes is not the client's fault
	n        int64
}

// Read returns io.EOF only at the true end of the body. Other errors: errBodyTimeout,
// errBodyCut.
func (i *idleReader) Read(p []byte) (int, error) {
	began := time.Now()
	// Moving the deadline costs more than looking at the clock.
	if i.deadline.Sub(began) < i.idle {
		patience := i.idle + i.idle/4
		budget := patience + time.Duration(i.n)*(time.Second/minBodyRate) - i.waited
		i.deadline = began.Add(min(patience, budget))
		i.a.ctl.SetReadDeadline(i.deadline)
	}
	n, err := i.body.Read(p)
	i.n += int64(n)
	i.a.received += int64(n)
	i.waited += time.Since(began)
	switch {
	case err == nil:
	case err == io.EOF:
		// The server now watches the connection for the client's leaving, which a
		// deadline would look like.
		i.a.ctl.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errBodyTimeout
	default:
		err = fmt.Errorf("%w: %v", errBodyCut, err)
	}
	return n, err
}

// checkEncoding refuses bodies that would have to be decoded: stored as they are they
// would be garbage to every reader.
func checkEncoding(r *http.Request) error {
	for _, line := range r.Header["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "", "identity":
			default:
				return errEncoding
			}
		}
	}
	return nil
}
