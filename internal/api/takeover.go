package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"
)

// takeover is an HTTP/1.1 connection that an event stream has taken from net/http in the
// middle of a chunked response, which is the last one on it. What net/http keeps for a
// request is four times what a reader needs that waits: buffers of 10 KiB, the request
// with its header, and a stack that the handlers below have grown.
type takeover struct {
	net.Conn
	buffers *buffers
	broken  bool // a write failed, maybe within a chunk
}

// Header returns nil: the header has been sent.
func (t *takeover) Header() http.Header { return nil }

// WriteHeader does nothing: the header has been sent.
func (t *takeover) WriteHeader(int) {}

// Write sends p, which is not empty, as one chunk (RFC 9112 §7.1).
func (t *takeover) Write(p []byte) (int, error) {
	b := t.buffers.get(len(p) + 16)
	defer t.buffers.put(b)
	*b = strconv.AppendUint(*b, uint64(len(p)), 16)
	*b = append(*b, "\r\n"...)
	*b = append(*b, p...)
	*b = append(*b, "\r\n"...)
	if _, err := t.Conn.Write(*b); err != nil {
		t.broken = true
		return 0, err
	}
	return len(p), nil
}

// Flush does nothing: nothing is held back.
func (t *takeover) Flush() {}

// end tells the client that this was all, unless it cannot be told.
func (t *takeover) end() {
	if t.broken {
		return
	}
	t.SetWriteDeadline(time.Now().Add(time.Second))
	t.Conn.Write([]byte("0\r\n\r\n"))
}

// canTakeOver reports whether the connection of a request can be taken over, if its
// writer can hijack. What is left of a body would have to be read first.
func canTakeOver(r *http.Request) bool {
	return r.ProtoMajor == 1 && r.ProtoMinor == 1 && r.Body == http.NoBody
}

// takeOver has the rest of the response sent by rest, in a goroutine of its own with a
// small stack, and reports whether that is so; then the handler is to return. The context
// ends when the client leaves. The header must have been sent, with Connection: close.
func (s *Server) takeOver(a *answer, r *http.Request, rest func(context.Context)) bool {
	if !canTakeOver(r) || !s.addTakeover() {
		return false
	}
	conn, _, err := a.ctl.Hijack()
	if err != nil {
		s.takeovers.Done()
		return false
	}
	t := &takeover{Conn: conn, buffers: &s.buffers}
	method, route := r.Method, a.route
	a.ResponseWriter, a.ctl, a.request, a.takenOver = t, http.NewResponseController(t), nil, true
	ctx, leave := context.WithCancel(context.Background())
	go func() {
		defer leave()
		untilItLeaves(conn)
	}()
	go func() {
		defer s.takeovers.Done()
		defer leave()
		defer conn.Close()
		stop := context.AfterFunc(s.cut, func() { conn.Close() })
		defer stop()
		defer s.metrics.observe(a, method, 0)
		defer func() {
			if v := recover(); v != nil {
				s.opts.Logger.Error("event stream panicked", "route", route, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
		}()
		rest(ctx)
		t.end()
	}()
	return true
}

// addTakeover counts one more, before net/http forgets the connection, unless Shutdown
// has begun.
func (s *Server) addTakeover() bool {
	s.takeover.Lock()
	defer s.takeover.Unlock()
	if !s.over {
		s.takeovers.Add(1)
	}
	return !s.over
}

// maxIgnored is how much a client may send that nobody reads, such as its next request
// before the end of this answer.
const maxIgnored = 64 << 10

// untilItLeaves returns when the client has closed the connection or sends what it should
// not. What is left unread when a connection is closed would take the last event away.
func untilItLeaves(conn net.Conn) {
	b := make([]byte, 128)
	for ignored := 0; ignored <= maxIgnored; {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		ignored += n
	}
}

// Shutdown waits for the live readers that [http.Server.Shutdown] does not know of, and
// cuts their connections when ctx ends. It comes after Drain and after the HTTP server's
// own end, and before the store is closed.
func (s *Server) Shutdown(ctx context.Context) {
	s.takeover.Lock()
	s.over = true
	s.takeover.Unlock()
	stop := context.AfterFunc(ctx, s.cutAll)
	defer stop()
	s.takeovers.Wait()
}
