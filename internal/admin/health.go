package admin

import (
	"fmt"
	"net/http"
	"time"
)

// health answers as long as the process serves at all.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, map[string]string{"status": "ok"})
}

// Readiness is the body of /readyz.
type Readiness struct {
	Ready bool `json:"ready"`
	// Reasons say why the server is not ready, Notes what an operator should know
	// although it is.
	Reasons []string `json:"reasons"`
	Notes   []string `json:"notes"`
}

// ready tells whether clients should be sent here. Trouble of the object store is
// told but does not make the server unready: the hot tier works without it.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	r := Readiness{Ready: true, Reasons: []string{}, Notes: []string{}}
	if s.drained.Err() != nil {
		r.Reasons = append(r.Reasons, "the server is draining")
	}
	if full := s.opts.Store.Full(); full != "" {
		r.Notes = append(r.Notes, "appends are refused: "+full)
	}
	if trouble := s.opts.ColdTrouble; trouble != nil {
		if since, err := trouble(); err != nil {
			r.Notes = append(r.Notes, "calls to the object store fail"+reason(since, err))
		}
	}
	if c := s.opts.Compactor.Status(); c.Err != nil {
		r.Notes = append(r.Notes, "the compactor fails"+reason(c.Since, c.Err))
	} else if c.Stuck > 0 {
		r.Notes = append(r.Notes, "some streams cannot be sealed, see the log")
	}
	if c := s.opts.Scrub; c != nil {
		if n := c.Status().Objects(); n > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d objects are damaged or missing, see firn verify", n))
		}
	}
	if b := s.opts.Backup; b != nil {
		if st := b.Status(); st.Err != nil {
			r.Notes = append(r.Notes, "the catalog is not copied, and no object is removed,"+reason(st.Since, st.Err))
		}
	}
	status := http.StatusOK
	if len(r.Reasons) > 0 {
		r.Ready, status = false, http.StatusServiceUnavailable
	}
	write(w, status, r)
}

// reason tells since when something fails and what with.
func reason(since time.Time, err error) string {
	return " since " + since.UTC().Format(time.RFC3339) + ": " + err.Error()
}
