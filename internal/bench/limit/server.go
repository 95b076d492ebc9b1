package limit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// Recorded is an answer of a server that is played back.
type Recorded struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// The paths of a [Server].
const (
	PathRecord = "/record"  // POST a [Recorded]; the answer's body is its number
	PathPlay   = "/play/"   // {number}/anything: reads the body, plays the answer back
	PathSynced = "/synced/" // the same, when the body is in a synced log
	PathFiles  = "/files/"  // {name}: a file of the directory, which the kernel sends
)

// Server is an HTTP server that has nothing to do.
type Server struct {
	dir string
	log *Log
	mux *http.ServeMux

	mu      sync.RWMutex // guards answers
	answers []Recorded
}

// NewServer keeps its log in a directory, and sends the files of that.
func NewServer(dir string) (*Server, error) {
	log, err := OpenLog(filepath.Join(dir, "synced.log"))
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, log: log, mux: http.NewServeMux()}
	s.mux.HandleFunc("POST "+PathRecord, s.record)
	s.mux.HandleFunc(PathPlay, func(w http.ResponseWriter, r *http.Request) { s.play(w, r, PathPlay, nil) })
	s.mux.HandleFunc(PathSynced, func(w http.ResponseWriter, r *http.Request) { s.play(w, r, PathSynced, s.log.Append) })
	s.mux.Handle(PathFiles, http.StripPrefix(PathFiles, http.FileServer(http.Dir(dir))))
	return s, nil
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends the log. No request may run any more.
func (s *Server) Close() error { return s.log.Close() }

func (s *Server) record(w http.ResponseWriter, r *http.Request) {
	var a Recorded
	if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// What the server writes by itself.
	for _, name := range []string{"Date", "Content-Length", "Transfer-Encoding", "Connection"} {
		a.Header.Del(name)
	}
	s.mu.Lock()
	s.answers = append(s.answers, a)
	n := len(s.answers) - 1
	s.mu.Unlock()
	io.WriteString(w, strconv.Itoa(n))
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (s *Server) play(w http.ResponseWriter, r *http.Request, root string, keep func([]byte) error) {
	number, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, root), "/")
	n, err := strconv.Atoi(number)
	s.mu.RLock()
	if err != nil || n < 0 || n >= len(s.answers) {
		s.mu.RUnlock()
		http.NotFound(w, r)
		return
	}
	a := &s.answers[n] // never changed once it is there
	s.mu.RUnlock()
	if r.ContentLength != 0 {
		body := bodies.Get().(*bytes.Buffer)
		defer bodies.Put(body)
		body.Reset()
		_, err := body.ReadFrom(r.Body)
		if err == nil && keep != nil {
			err = keep(body.Bytes())
		}
		if err != nil {
			http.Error(w, fmt.Sprint("take body: ", err), http.StatusInternalServerError)
			return
		}
	}
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}
