package api

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/gorilla/mux"

	"firn/pkg/stream"
	"firn/tier"
)

// publishSnapshot serves PUT of a snapshot (X§2.2). The blob streams through; it is
// never whole in memory.
func (s *Server) publishSnapshot(a *answer, r *http.Request) error {
	name, at, err := s.snapshotOf(r)
	if err != nil {
		return err
	}
	if err := checkEncoding(r); err != nil {
		return err
	}
	contentType, err := parseContentType(r.Header)
	if err != nil {
		return err
	}
	req := tier.PublishRequest{Name: name, Offset: at, ContentType: cmp.Or(contentType, stream.DefaultContentType), Size: r.ContentLength}
	if req.Size > s.opts.SnapshotBytes {
		return stream.ErrSnapshotTooLarge
	}
	in := &upload{
		body:  &idleReader{a: a, body: r.Body, idle: s.opts.BodyIdleTimeout},
		limit: s.opts.SnapshotBytes,
	}
	req.Body = in
	err = s.store.PublishSnapshot(r.Context(), req)
	if in.err != nil {
		return in.err // what the store made of it says less
	}
	if err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// upload is a body that the store reads, up to a limit.
type upload struct {
	body  io.Reader
	limit int64
	n     int64
	err   error // why the body could not be read to its end
}

// Read fails with [stream.ErrSnapshotTooLarge] beyond the limit.
func (u *upload) Read(p []byte) (int, error) {
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.body.Read(p)
	u.n += int64(n)
	if u.n > u.limit {
		err = stream.ErrSnapshotTooLarge
	}
	if err != nil && err != io.EOF {
		u.err = err
	}
	return n, err
}

// latestSnapshot serves GET and HEAD of a stream's snapshot: where it is (X§2.3).
func (s *Server) latestSnapshot(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	snap, err := s.store.LatestSnapshot(r.Context(), name)
	if err != nil {
		return err
	}
	offset := snap.Offset.String()
	a.Header().Set(headerSnapshotOffset, offset)
	a.Header().Set(headerLocation, s.location(r, r.URL.EscapedPath()+"/"+offset))
	a.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// readSnapshot serves GET and HEAD of a snapshot blob (X§2.5).
func (s *Server) readSnapshot(a *answer, r *http.Request) error {
	name, at, err := s.existingSnapshotOf(r)
	if err != nil {
		return err
	}
	snap, err := s.store.OpenSnapshot(r.Context(), name, at)
	if err != nil {
		return err
	}
	defer snap.Body.Close()
	tag := snapshotTag(snap)
	h := a.Header()
	h.Set(headerContentType, snap.ContentType)
	h.Set(headerSnapshotOffset, snap.Offset.String())
	h.Set(headerNextOffset, snap.Offset.String())
	setTrue(h, headerUpToDate, snap.UpToDate)
	setTrue(h, headerClosed, snap.Closed)
	h.Set(headerETag, tag)
	// The blob may be replaced under the same offset: keep it, but ask.
	if s.opts.CachePublic {
		h.Set(headerCacheControl, "public, no-cache")
	} else {
		h.Set(headerCacheControl, "private, no-cache")
	}
	a.varies()
	if held := heldTag(r, tag); held != "" {
		h.Set(headerETag, held)
		a.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.sendBlob(a, r, snap)
}

// deleteSnapshot serves DELETE of a snapshot (X§2.6).
func (s *Server) deleteSnapshot(a *answer, r *http.Request) error {
	name, at, err := s.existingSnapshotOf(r)
	if err != nil {
		return err
	}
	if err := s.store.DeleteSnapshot(r.Context(), name, at); err != nil {
		return err
	}
	a.WriteHeader(http.StatusNoContent)
	return nil
}

// snapshotOf returns the stream and the offset that a snapshot's path names. A missing
// stream wins over a malformed offset.
func (s *Server) snapshotOf(r *http.Request) (stream.Name, stream.Offset, error) {
	name, at, err := snapshotPath(r)
	if errors.Is(err, stream.ErrOffsetMalformed) {
		err = s.unlessMissing(r.Context(), name, err)
	}
	return name, at, err
}

// existingSnapshotOf is snapshotOf where there should be a snapshot: what is no offset
// is not that of any (X§2.5, X§2.6).
func (s *Server) existingSnapshotOf(r *http.Request) (stream.Name, stream.Offset, error) {
	name, at, err := snapshotPath(r)
	if errors.Is(err, stream.ErrOffsetMalformed) {
		err = s.unlessMissing(r.Context(), name, stream.ErrSnapshotNotFound)
	}
	return name, at, err
}

func snapshotPath(r *http.Request) (name stream.Name, at stream.Offset, err error) {
	if name, err = nameOf(r); err != nil {
		return name, at, err
	}
	token, err := url.PathUnescape(mux.Vars(r)["offset"])
	if err != nil {
		return name, at, stream.ErrOffsetMalformed
	}
	at, err = stream.ParseOffset(token)
	return name, at, err
}
