package api

import "net/http"

// headStream serves HEAD of a stream: what it is, without renewing its life (B§5.5).
func (s *Server) headStream(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	info, err := s.store.Head(r.Context(), name)
	if err != nil {
		return err
	}
	h := a.Header()
	h.Set(headerContentType, info.ContentType)
	h.Set(headerNextOffset, info.Tail.String())
	setTrue(h, headerClosed, info.Closed)
	setLifetime(h, info.Lifetime)
	if info.Snapshot != nil {
		h.Set(headerSnapshotOffset, info.Snapshot.Offset.String())
	}
	a.varies() // as GET does
	a.WriteHeader(http.StatusOK)
	return nil
}
