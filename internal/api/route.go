package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"firn/pkg/stream"
)

// The two surfaces. Paths are matched while still escaped, so that an escaped slash
// never becomes a separator, and are never cleaned or redirected.
const (
	bucketRoot = "/ds/"
	flatRoot   = "/v1/stream/"

	// listingID is no stream id on the bucketed surface (X§1.1).
	listingID = "streams"
)

// handler answers one method of one resource.
type handler func(a *answer, r *http.Request) error

// methods are what a resource can do.
type methods map[string]handler

// reservedSegment begins the paths of the control APIs, on both surfaces (B§2).
const reservedSegment = "__ds"

// routeStreams makes the resources that nearly all requests are for. They do not go
// through the router: its regular expressions and copies of the request took a tenth of
// the processor time of an append.
func (s *Server) routeStreams() {
	on := methods{
		http.MethodPut:    s.createStream,
		http.MethodPost:   s.appendStream,
		http.MethodGet:    s.readStream,
		http.MethodHead:   s.headStream,
		http.MethodDelete: s.deleteStream,
	}
	s.bucketed = s.resource("/ds/{bucket}/{stream}", on)
	s.bootstraps = s.resource("/ds/{bucket}/{stream}/bootstrap", methods{
		http.MethodGet:  s.bootstrap,
		http.MethodHead: s.bootstrap,
	})
	s.flat = s.resource("/v1/stream/{path}", on)
}

// streamAt returns the resource that an escaped path names, or nil if it is none of
// them.
func (s *Server) streamAt(path string) http.Handler {
	if rest, ok := strings.CutPrefix(path, flatRoot); ok {
		if rest == "" || isReserved(rest) {
			return nil
		}
		return s.flat
	}
	rest, ok := strings.CutPrefix(path, bucketRoot)
	if !ok || isReserved(rest) {
		return nil
	}
	bucket, rest, _ := strings.Cut(rest, "/")
	id, below, deeper := strings.Cut(rest, "/")
	switch {
	case bucket == "" || id == "":
		return nil
	case !deeper && !isListing(id):
		return s.bucketed
	case below == "bootstrap":
		return s.bootstraps
	}
	return nil
}

func isReserved(path string) bool {
	rest, ok := strings.CutPrefix(path, reservedSegment)
	return ok && (rest == "" || rest[0] == '/')
}

// routes are those of everything but streams.
func (s *Server) routes() *mux.Router {
	m := mux.NewRouter().UseEncodedPath().SkipClean(true)
	m.NotFoundHandler = s.refuse(errNoRoute)

	add := func(path string, on methods) { m.Path(path).Handler(s.resource(path, on)) }
	s.controlRoutes(m)
	add("/ds/{bucket}", methods{
		http.MethodPut:    s.createBucket,
		http.MethodGet:    s.readBucket,
		http.MethodHead:   s.readBucket,
		http.MethodDelete: s.deleteBucket,
	})
	listing := methods{
		http.MethodGet:  s.listStreams,
		http.MethodHead: s.listStreams,
	}
	// However the reserved id is spelt, no stream is left that could be meant.
	m.Path("/ds/{bucket}/{listing}").Handler(s.resource("/ds/{bucket}/streams", listing))
	add("/ds/{bucket}/{stream}/snapshot", methods{
		http.MethodGet:  s.latestSnapshot,
		http.MethodHead: s.latestSnapshot,
	})
	add("/ds/{bucket}/{stream}/snapshot/{offset}", methods{
		http.MethodPut:    s.publishSnapshot,
		http.MethodGet:    s.readSnapshot,
		http.MethodHead:   s.readSnapshot,
		http.MethodDelete: s.deleteSnapshot,
	})
	return m
}

// isListing also sees through percent escapes: a spelling is not a way around the
// reserved id.
func isListing(escaped string) bool {
	id, err := url.PathUnescape(escaped)
	return err == nil && id == listingID
}

// resource dispatches by method and renders errors. The route's name, not the path, is
// what metrics see.
func (s *Server) resource(route string, on methods) http.Handler {
	allowed := []string{http.MethodOptions}
	for method := range on {
		allowed = append(allowed, method)
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := w.(*answer)
		a.route = route
		h, ok := on[r.Method]
		if !ok {
			a.Header().Set(headerAllow, allow)
			s.fail(a, r, errMethod)
			return
		}
		if err := s.run(h, a, r); err != nil {
			s.fail(a, r, err)
		}
	})
}

// run keeps bodies away from methods that have no use for them.
func (s *Server) run(h handler, a *answer, r *http.Request) error {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if r.ContentLength != 0 {
			return errBodyUnexpected
		}
	case http.MethodDelete:
		s.bodies.discard(a, r)
	}
	return h(a, r)
}

func (s *Server) refuse(err error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.fail(w.(*answer), r, err) })
}

// nameOf returns the stream that a request's path names, or begins with.
func nameOf(r *http.Request) (stream.Name, error) {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, flatRoot); ok {
		return flatName(rest)
	}
	bucket, rest, _ := strings.Cut(path[len(bucketRoot):], "/")
	id, _, _ := strings.Cut(rest, "/")
	return bucketedName(bucket, id)
}

// bucketOf returns the bucket that a request's path names.
func bucketOf(r *http.Request) (string, error) {
	bucket, err := url.PathUnescape(mux.Vars(r)["bucket"])
	if err != nil {
		return "", stream.ErrBucketName
	}
	return bucket, stream.CheckBucket(bucket)
}

// bucketedName decodes two escaped path segments.
func bucketedName(bucket, id string) (stream.Name, error) {
	bucket, err := url.PathUnescape(bucket)
	if err != nil {
		return stream.Name{}, stream.ErrBucketName
	}
	id, err = url.PathUnescape(id)
	if err != nil {
		return stream.Name{}, stream.ErrStreamName
	}
	return stream.ParseName(bucket, id)
}

// flatName decodes the escaped segments of a path on the flat surface.
func flatName(path string) (stream.Name, error) {
	segments := strings.Split(path, "/")
	for i, escaped := range segments {
		s, err := url.PathUnescape(escaped)
		if err != nil {
			return stream.Name{}, stream.ErrStreamName
		}
		segments[i] = s
	}
	return stream.ParsePath(segments)
}

// nameOfPath returns the stream that the URL path of another stream names, on either
// surface (B§4.2).
func nameOfPath(path string) (stream.Name, error) {
	if strings.ContainsAny(path, "?#") {
		return stream.Name{}, errForkedFrom
	}
	if rest, ok := strings.CutPrefix(path, flatRoot); ok {
		return flatName(rest)
	}
	if rest, ok := strings.CutPrefix(path, bucketRoot); ok {
		bucket, id, ok := strings.Cut(rest, "/")
		if ok && !strings.Contains(id, "/") {
			return bucketedName(bucket, id)
		}
	}
	return stream.Name{}, errForkedFrom
}
