package api

import "net/http"

// deleteStream serves DELETE of a stream (B§5.4).
func (s *Server) deleteStream(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	if err := s.store.Delete(r.Context(), name); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}
