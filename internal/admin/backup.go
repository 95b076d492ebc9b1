package admin

import (
	"net/http"
	"time"
)

// Copied is the answer to a request for a copy of the catalog.
type Copied struct {
	// UpTo is the moment up to which everything is copied.
	UpTo time.Time `json:"up_to"`
}

// backup makes a copy of the catalog now.
func (s *Server) backup(w http.ResponseWriter, r *http.Request) {
	if s.opts.Backup == nil {
		problem(w, http.StatusConflict, "no_backup", "this server makes no copies: see backup.interval and cold.url")
		return
	}
	ms, err := s.opts.Backup.Copy(r.Context())
	if err != nil {
		s.fail(w, err)
		return
	}
	write(w, http.StatusOK, Copied{UpTo: time.UnixMilli(int64(ms)).UTC()})
}
