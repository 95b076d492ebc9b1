package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"firn/internal/verify"
)

// Verification is a line of the answer to POST /admin/verify: how far it is, and at
// last what was found, or why it could not go on.
type Verification struct {
	Progress *verify.Progress `json:"progress,omitempty"`
	Report   *verify.Report   `json:"report,omitempty"`
	Error    string           `json:"error,omitempty"`
}

// verify looks at the whole store while it is in use. One look at a time is enough.
func (s *Server) verify(w http.ResponseWriter, r *http.Request) {
	o := s.opts.Verify
	q := r.URL.Query()
	var err error
	if o.Structure, err = strconv.ParseBool(cmp.Or(q.Get("structure"), "false")); err != nil {
		problem(w, http.StatusBadRequest, "parameter_invalid", "structure is true or false")
		return
	}
	if o.Rate, err = strconv.ParseInt(cmp.Or(q.Get("rate"), "0"), 10, 64); err != nil || o.Rate < 0 {
		problem(w, http.StatusBadRequest, "parameter_invalid", "rate is a number of bytes a second")
		return
	}
	if !s.verifying.TryLock() {
		problem(w, http.StatusConflict, "verify_runs", "a verification is running, wait for its end")
		return
	}
	defer s.verifying.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.drained, cancel)()

	w.Header().Set("Content-Type", "application/x-ndjson")
	control := http.NewResponseController(w)
	lines := json.NewEncoder(w)
	send := func(v Verification) {
		// Who does not read is let go of, with the views that are held for them.
		_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
		if lines.Encode(v) != nil || control.Flush() != nil {
			cancel()
		}
	}
	o.Progress = func(p verify.Progress) { send(Verification{Progress: &p}) }
	send(Verification{Progress: new(verify.Progress)})
	report, err := verify.Run(ctx, o)
	if err != nil {
		s.log.Warn("verification broke off", "err", err)
		send(Verification{Error: err.Error()})
		return
	}
	s.agree(report)
	for _, p := range report.Problems {
		s.log.Error("verification found a problem", "code", string(p.Code), "problem", p.String())
	}
	send(Verification{Report: report})
}

// agree has the scrub look at what a verification found, and at what it has found
// itself: both are to say the same.
func (s *Server) agree(report *verify.Report) {
	if s.opts.Scrub == nil {
		return
	}
	for _, p := range report.Problems {
		if p.Object != "" {
			s.opts.Scrub.Suspect(p.Object)
		}
	}
	s.opts.Scrub.Recheck()
}
