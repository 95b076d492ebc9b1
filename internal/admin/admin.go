// Package admin is the operator's listener: metrics, health, what the catalog has
// of a stream, and seal, evict and verify on demand. It is not the clients' surface and is
// to be reached by operators alone; a token guards it where an address does not.
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"firn/compactor"
	"firn/internal/backup"
	"firn/internal/scrub"
	"firn/internal/verify"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
)

// Options configures a [Server]. Store, Compactor and Gatherer are required.
type Options struct {
	Store     *tier.Store
	Compactor *compactor.Compactor
	// Scrub reads objects again; nil when nothing does.
	Scrub *scrub.Scrubber
	// ColdTrouble tells since when calls to the object store fail and with what; nil
	// without one.
	ColdTrouble func() (since time.Time, err error)
	// Backup makes copies of the catalog; nil when none are made.
	Backup   *backup.Runner
	Gatherer prometheus.Gatherer
	// Verify says what a verification looks at.
	Verify verify.RunOptions
	// Token is what callers send as a bearer token, except for health; empty admits
	// everybody who reaches the address.
	Token  string
	Logger *slog.Logger
}

// Server is the handler of the operator's listener.
type Server struct {
	opts    Options
	log     *slog.Logger
	router  *mux.Router
	drained context.Context // ends when the server drains
	drain   context.CancelFunc

	verifying sync.Mutex // held by the verification that runs
}

// New makes the handler.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, log: o.Logger, router: mux.NewRouter().UseEncodedPath().SkipClean(true)}
	s.drained, s.drain = context.WithCancel(context.Background())
	s.router.NotFoundHandler = refuse(http.StatusNotFound, "no_such_resource", "there is nothing at this path")
	s.router.MethodNotAllowedHandler = refuse(http.StatusMethodNotAllowed, "method_not_allowed", "this resource does not take the method")
	s.router.HandleFunc("/healthz", s.health).Methods(http.MethodGet, http.MethodHead)
	s.router.HandleFunc("/readyz", s.ready).Methods(http.MethodGet, http.MethodHead)

	guarded := s.router.NewRoute().Subrouter()
	// Without a token, what is on the loopback interface can be reached by every page
	// in a browser there; none of them is to seal or to evict.
	pages := http.NewCrossOriginProtection()
	pages.SetDenyHandler(refuse(http.StatusForbidden, "cross_origin", "pages of other origins are refused"))
	guarded.Use(s.authorize, pages.Handler)
	guarded.Handle("/metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{EnableOpenMetrics: true})).Methods(http.MethodGet)
	guarded.HandleFunc("/admin/streams/{bucket}/{stream:.+}/seal", s.change(o.Compactor.SealStream)).Methods(http.MethodPost)
	guarded.HandleFunc("/admin/streams/{bucket}/{stream:.+}/evict", s.change(o.Compactor.EvictStream)).Methods(http.MethodPost)
	guarded.HandleFunc("/admin/streams/{bucket}/{stream:.+}", s.describe).Methods(http.MethodGet)
	guarded.HandleFunc("/admin/verify", s.verify).Methods(http.MethodPost)
	guarded.HandleFunc("/admin/backup", s.backup).Methods(http.MethodPost)
	guarded.HandleFunc("/admin/buckets", s.buckets).Methods(http.MethodGet)
	guarded.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	guarded.HandleFunc("/debug/pprof/profile", pprof.Profile)
	guarded.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	guarded.HandleFunc("/debug/pprof/trace", pprof.Trace)
	guarded.PathPrefix("/debug/pprof/").HandlerFunc(pprof.Index)
	return s
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.router.ServeHTTP(w, r)
}

// Drain makes the server unready, for balancers to send no more clients.
func (s *Server) Drain() { s.drain() }

// authorize compares tokens by their hashes, so that neither content nor length
// shows in the time that it takes.
func (s *Server) authorize(next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.opts.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(token))
		if s.opts.Token != "" && subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, http.StatusUnauthorized, "unauthorized", "the admin token is missing or wrong")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// nameOf reads the name of a stream: an id of the flat surface may hold slashes.
func nameOf(r *http.Request) (stream.Name, error) {
	vars := mux.Vars(r)
	var segments []string
	for raw := range strings.SplitSeq(vars["stream"], "/") {
		s, err := url.PathUnescape(raw)
		if err != nil {
			return stream.Name{}, stream.ErrStreamName
		}
		segments = append(segments, s)
	}
	if vars["bucket"] == stream.DefaultBucket {
		return stream.ParsePath(segments)
	}
	return stream.ParseName(vars["bucket"], strings.Join(segments, "/"))
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	// An error here is a client that went away.
	_ = e.Encode(v)
}

func refuse(status int, code, detail string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { problem(w, status, code, detail) })
}

// problem answers with an error in the form of RFC 9457.
func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}

// fail answers with what an error of the store means. Operators are told all of it.
func (s *Server) fail(w http.ResponseWriter, err error) {
	for _, m := range []struct {
		err    error
		status int
		code   string
	}{
		{stream.ErrBucketName, http.StatusBadRequest, "bucket_name_invalid"},
		{stream.ErrStreamName, http.StatusBadRequest, "stream_name_invalid"},
		{stream.ErrBucketNotFound, http.StatusNotFound, "bucket_not_found"},
		{stream.ErrNotFound, http.StatusNotFound, "stream_not_found"},
		{stream.ErrGone, http.StatusGone, "stream_deleted"},
		{compactor.ErrSealingOff, http.StatusConflict, "no_cold_storage"},
		{cold.ErrForeign, http.StatusConflict, "cold_storage_taken"},
		{cold.ErrStale, http.StatusConflict, "cold_storage_taken"},
		{cold.ErrFenced, http.StatusConflict, "cold_storage_taken"},
		{stream.ErrColdUnavailable, http.StatusServiceUnavailable, "cold_unavailable"},
		{stream.ErrUnavailable, http.StatusServiceUnavailable, "unavailable"},
		{context.Canceled, http.StatusServiceUnavailable, "unavailable"}, // nobody waits for it
	} {
		if errors.Is(err, m.err) {
			problem(w, m.status, m.code, err.Error())
			return
		}
	}
	s.log.Error("admin request failed", "err", err)
	problem(w, http.StatusInternalServerError, "internal", "see the server's log")
}
