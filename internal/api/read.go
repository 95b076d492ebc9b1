package api

import (
	"context"
	"net/http"

	"firn/pkg/stream"
	"firn/tier"
)

const (
	cachePrivate = "private, max-age=60, stale-while-revalidate=300"
	cachePublic  = "public, max-age=60, stale-while-revalidate=300"
)

// readStream serves GET of a stream in its three modes (B§5.6 to B§5.8).
func (s *Server) readStream(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	q, err := s.readQuery(r, name)
	if err != nil {
		return err
	}
	switch q.live {
	case longPoll:
		return s.longPoll(a, r, name, q)
	case events:
		return s.events(a, r, name, q)
	}
	return s.readPage(a, r, name, q)
}

func (s *Server) readQuery(r *http.Request, name stream.Name) (*readQuery, error) {
	q, err := parseReadQuery(r)
	if err != nil {
		return nil, s.unlessMissing(r.Context(), name, err)
	}
	return &q, nil
}

func (s *Server) readPage(a *answer, r *http.Request, name stream.Name, q *readQuery) error {
	page, err := s.store.Read(r.Context(), name, q.start)
	if err != nil {
		return err
	}
	defer page.Release()
	s.metrics.read(&page)

	setPage(a, &page)
	if q.start.IsNow() { // the tail of a moment: nothing to keep or to compare
		return s.writePage(r.Context(), a, &page)
	}
	tag := pageTag(&page)
	a.Header().Set(headerETag, tag)
	if s.opts.CachePublic {
		a.Header().Set(headerCacheControl, cachePublic)
	} else {
		a.Header().Set(headerCacheControl, cachePrivate)
	}
	if held := heldTag(r, tag); held != "" {
		a.Header().Set(headerETag, held)
		a.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.writePage(r.Context(), a, &page)
}

// unlessMissing lets "there is no such stream" win over a complaint about the request.
func (s *Server) unlessMissing(ctx context.Context, name stream.Name, err error) error {
	if _, missing := s.store.Head(ctx, name); missing != nil {
		return missing
	}
	return err
}

// setPage describes a page.
func setPage(a *answer, p *tier.Page) {
	a.varies()
	h := a.Header()
	h.Set(headerContentType, p.Info.ContentType)
	h.Set(headerNextOffset, p.Next.String())
	setTrue(h, headerUpToDate, p.UpToDate)
	setTrue(h, headerClosed, p.Closed)
	if p.Tier != tier.None {
		h.Set(headerServerTiming, `tier;desc="`+p.Tier.String()+`"`)
	}
}

// writePage sends 200 and the page's bytes, in JSON mode as one array (B§9.1.5). The
// client's leaving is no error. Errors: errOutgoing, before anything is written.
func (s *Server) writePage(ctx context.Context, a *answer, p *tier.Page) error {
	body := p.Data
	release, err := s.outgoing.take(ctx, len(body))
	if err != nil {
		return err
	}
	defer release()
	if p.Info.Mode == stream.JSON {
		body = p.JSONArray()
	}
	var lent *[]byte // holds body when it is not the page's own bytes
	if lent = a.encode(body); lent != nil {
		body = *lent
		p.Release() // the coded copy is what the network waits for
	}
	a.deliver(http.StatusOK, body)
	s.buffers.put(lent)
	return nil
}
