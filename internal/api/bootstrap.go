package api

import (
	"bufio"
	"net/http"

	"firn/pkg/stream"
	"firn/tier"
)

// bootstrap serves the snapshot and the updates after it in one answer (X§3). What
// follows the header can fail only with the snapshot's blob; then the transfer is
// broken off before the closing boundary.
func (s *Server) bootstrap(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	q, err := parseQuery(r)
	if err == nil && q.Has("live") {
		err = errLiveBootstrap
	}
	if err != nil {
		return s.unlessMissing(r.Context(), name, err)
	}
	boundary, err := newBoundary(s.opts.Random)
	if err != nil {
		return err
	}
	boot, err := s.store.Bootstrap(r.Context(), name)
	if err != nil {
		return err
	}
	defer boot.Close()

	h := a.Header()
	h.Set(headerContentType, "multipart/mixed; boundary="+boundary)
	h.Set(headerSnapshotOffset, "-1")
	if boot.Snapshot != nil {
		h.Set(headerSnapshotOffset, boot.Snapshot.Offset.String())
	}
	h.Set(headerNextOffset, boot.Next.String())
	setTrue(h, headerUpToDate, boot.UpToDate)
	setTrue(h, headerClosed, boot.Closed)
	a.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	s.metrics.bootstrap(boot.Partial)
	w := s.pieces.Get().(*bufio.Writer)
	w.Reset(a)
	defer func() {
		w.Reset(nil)
		s.pieces.Put(w)
	}()
	m := &multipartWriter{w: w, boundary: boundary}
	if err := writeBootstrap(m, r, boot); err != nil {
		return err
	}
	m.close() // its only errors are the client's leaving
	return nil
}

// writeBootstrap writes the parts: the snapshot, empty when there is none; then one
// part a message, or one part in all when the stream has no messages.
func writeBootstrap(m *multipartWriter, r *http.Request, boot *tier.Bootstrap) error {
	if boot.Snapshot == nil {
		m.part(stream.DefaultContentType)
	} else {
		m.part(boot.Snapshot.ContentType)
		if _, err := copyBlob(m.w, r, boot.Snapshot); err != nil {
			return err
		}
	}
	if boot.Info.Mode == stream.JSON {
		for message := range stream.Messages(boot.Updates) {
			m.part(boot.Info.ContentType)
			m.w.Write(message)
		}
		return nil
	}
	if len(boot.Updates) > 0 {
		m.part(boot.Info.ContentType)
		m.w.Write(boot.Updates)
	}
	return nil
}
