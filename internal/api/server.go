package api

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"firn/tier"
)

// Server is the HTTP surface over one store.
type Server struct {
	opts       Options
	store      *tier.Store
	bucketed   http.Handler // streams
	flat       http.Handler // streams
	bootstraps http.Handler
	router     *mux.Router // all else
	bodies     *bodies
	outgoing   *outgoing
	fixed      []fixedHeader
	buffers    buffers
	pieces     sync.Pool // of *bufio.Writer with pieceBytes
	coder      *coder    // nil sends everything as it is
	fanout     *fanout
	metrics    *metrics

	// draining ends when Drain is called; live readers watch it.
	draining context.Context
	drain    context.CancelFunc

	// takeovers are event streams on connections of their own. Those that are left when
	// cut ends are broken off.
	takeovers sync.WaitGroup
	takeover  sync.Mutex // guards over, and the first addition to takeovers
	over      bool       // there are no further ones
	cut       context.Context
	cutAll    context.CancelFunc
}

// New returns the surface over o.Store.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		opts:    o,
		store:   o.Store,
		fanout:  newFanout(),
		metrics: newMetrics(o.Registerer),
	}
	s.pieces.New = func() any { return bufio.NewWriterSize(nil, pieceBytes) }
	s.fixed = fixedHeaders(o.CORS)
	s.outgoing = newOutgoing(o.OutgoingBytes, o.OutgoingWait)
	s.bodies = newBodies(o.AppendBytes, o.InflightBytes, o.BodyIdleTimeout)
	if !o.NoCompression {
		s.coder = newCoder(&s.buffers, s.metrics)
	}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.cut, s.cutAll = context.WithCancel(context.Background())
	s.routeStreams()
	s.router = s.routes()
	return s
}

// Handler returns the handler of all routes. It serves HTTP/1.1 and HTTP/2.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

// Drain gives every live reader its closing answer and refuses new ones with 503.
// Other requests are served on. Call it before [http.Server.Shutdown] and
// [Server.Shutdown], which wait for the live readers to be gone.
func (s *Server) Drain() { s.drain() }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	a := newAnswer(w, r, s.opts.WriteStallTimeout)
	a.coder = s.coder
	began := time.Now()
	defer func() {
		v := recover()
		if v != nil && v != http.ErrAbortHandler {
			v = s.panicked(a, r, v)
		}
		if a.takenOver {
			return
		}
		a.finish()
		s.metrics.observe(a, r.Method, time.Since(began))
		if v != nil {
			panic(v)
		}
	}()

	h := a.Header()
	for _, f := range s.fixed {
		h[f.name] = f.values
	}
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// Where a request has a Content-Length as well, a proxy may go by that and take
		// what follows the chunks for its body; then it must not be taken for a request
		// here (RFC 9112 §6.3). net/http does not tell whether there was one.
		h.Set("Connection", "close")
	}
	s.opts.CORS.apply(h, r)
	if r.Method == http.MethodOptions {
		s.preflight(a, r)
		return
	}
	if h := s.streamAt(r.URL.EscapedPath()); h != nil {
		h.ServeHTTP(a, r)
		return
	}
	s.router.ServeHTTP(a, r)
}

// panicked reports a bug and tells the client. When it is too late for that it returns
// what breaks the transfer off.
func (s *Server) panicked(a *answer, r *http.Request, v any) (abort any) {
	s.opts.Logger.Error("request panicked", "method", r.Method, "path", r.URL.Path,
		"err", fmt.Sprint(v), "stack", string(debug.Stack()))
	if a.committed {
		return http.ErrAbortHandler
	}
	writeProblem(a, r, internalProblem)
	return nil
}
