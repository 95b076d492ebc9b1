package api

import (
	"net/http"
	"strconv"

	"firn/pkg/stream"
	"firn/tier"
)

// longPoll serves a read that waits at the tail for a while (B§5.7). What it returns
// reaches to the tail of the moment, not just to the append that woke it.
func (s *Server) longPoll(a *answer, r *http.Request, name stream.Name, q *readQuery) error {
	if err := s.admitLive(a); err != nil {
		return err
	}
	cursor, err := nextCursor(s.opts.Clock(), q.cursor, s.opts.Random)
	if err != nil {
		return s.unlessMissing(r.Context(), name, err)
	}
	f, err := s.store.Follow(r.Context(), name, q.start)
	if err != nil {
		return err
	}
	defer f.Close()
	defer s.metrics.liveReader("long-poll")()

	ctx, cancel := s.patience(r.Context(), s.opts.LongPollTimeout)
	defer cancel()
	for {
		over := ctx.Err() != nil
		page, err := f.Next(r.Context())
		if err != nil {
			return err
		}
		if len(page.Data) > 0 || page.Closed || over {
			defer page.Release()
			return s.writeLongPoll(a, r, &page, cursor)
		}
		page.Release()
		if err := f.Wait(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (s *Server) writeLongPoll(a *answer, r *http.Request, p *tier.Page, cursor int64) error {
	s.metrics.read(p)
	h := a.Header()
	if !p.Closed || len(p.Data) > 0 { // B§5.7 excuses only the 204 of a closed stream
		h.Set(headerCursor, strconv.FormatInt(cursor, 10))
	}
	setPage(a, p)
	if len(p.Data) == 0 {
		h.Del(headerContentType)
		a.WriteHeader(http.StatusNoContent)
		return nil
	}
	tag := pageTag(p)
	h.Set(headerETag, tag)
	if held := heldTag(r, tag); held != "" {
		h.Set(headerETag, held)
		a.WriteHeader(http.StatusNotModified)
		return nil
	}
	return s.writePage(r.Context(), a, p)
}
