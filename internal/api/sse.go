package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"firn/pkg/stream"
	"firn/tier"
)

// heartbeat is a comment: it keeps idle connections open and means nothing to parsers.
var heartbeat = []byte(":\n\n")

// errEnded: an event stream has reached its age, its client takes no more, or the
// server is stopping.
var errEnded = errors.New("event stream has ended")

// events serves a read as Server-Sent Events (B§5.8). It ends with the stream, or after
// a while, for caches to collapse readers; the client then comes back with the last
// offset it was told.
func (s *Server) events(a *answer, r *http.Request, name stream.Name, q *readQuery) error {
	e, err := s.openEvents(a, r, name, q)
	if err != nil {
		return err
	}
	gone := s.metrics.liveReader("sse")
	leave := func() {
		gone()
		e.follower.Close()
	}
	takenOver := false
	defer func() {
		if !takenOver {
			leave()
		}
	}()
	// The first page comes before the header: its errors can still be told.
	if err = e.step(r.Context()); err == nil {
		takenOver = s.takeOver(a, r, func(ctx context.Context) {
			defer leave()
			s.logBroken(ctx, name, e.run(ctx))
		})
		if takenOver {
			return nil
		}
		err = e.run(r.Context())
	}
	if !a.committed {
		return err
	}
	s.logBroken(r.Context(), name, err)
	return nil
}

func (s *Server) openEvents(a *answer, r *http.Request, name stream.Name, q *readQuery) (*eventStream, error) {
	if err := s.admitLive(a); err != nil {
		return nil, err
	}
	cursor, err := nextCursor(s.opts.Clock(), q.cursor, s.opts.Random)
	if err != nil {
		return nil, s.unlessMissing(r.Context(), name, err)
	}
	f, err := s.store.Follow(r.Context(), name, q.start)
	if err != nil {
		return nil, err
	}
	return &eventStream{s: s, a: a, follower: f, cursor: cursor}, nil
}

// logBroken logs an end that is no part of the protocol. It is part of it also when the
// stream was deleted or has expired, or a snapshot has overtaken this reader: the
// connection ends, and coming back tells the client why.
func (s *Server) logBroken(ctx context.Context, name stream.Name, err error) {
	if _, known := problemOf(err); err == nil || known || errors.Is(err, errEnded) || ctx.Err() != nil {
		return
	}
	s.opts.Logger.Error("event stream broke off", "stream", name.String(), "err", err)
}

// eventStream is one connection's events.
type eventStream struct {
	s        *Server
	a        *answer
	follower *tier.Follower
	as       encoding
	text     textCut

	cursor int64   // never goes back
	told   bool    // a control event was sent
	last   control // the last one
}

// run sends pages after the first one until the stream is closed, errEnded, or an error.
// Pages are not among its variables, nor among those of its callers: the stack of a reader
// that waits is halved by the collector only while less than a quarter of it is in use.
func (e *eventStream) run(ctx context.Context) (err error) {
	end, cancel := e.s.patience(ctx, e.s.opts.SSEMaxAge)
	defer cancel()
	for err == nil && !e.last.closed {
		switch {
		case e.last.upToDate:
			err = e.wait(ctx, end)
		case end.Err() != nil:
			err = errEnded
		}
		if err == nil {
			err = e.step(ctx)
		}
	}
	return err
}

// step sends the next page, and before the first one the header.
func (e *eventStream) step(ctx context.Context) error {
	page, err := e.follower.Next(ctx)
	if err != nil {
		return err
	}
	defer page.Release()
	if !e.a.committed {
		e.begin(&page.Info)
	}
	return e.send(&page)
}

func (e *eventStream) begin(info *tier.Info) {
	e.as = encodingOf(info.ContentType, info.Mode)
	h := e.a.Header()
	h.Set(headerContentType, "text/event-stream")
	h.Set(headerCacheControl, "no-cache, no-store, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if canTakeOver(e.a.request) {
		h.Set("Connection", "close")
	}
	if e.as == asBase64 {
		h.Set(headerSSEEncoding, "base64")
	}
	e.a.WriteHeader(http.StatusOK)
}

// send delivers a page and says where it ends. When a page brings nothing that the
// client does not know, it is silent.
func (e *eventStream) send(p *tier.Page) error {
	e.s.metrics.read(p)
	data, c := p.Data, control{offset: p.Next, upToDate: p.UpToDate, closed: p.Closed}
	if e.as == asText {
		var held int
		data, held = e.text.next(p.Data, p.Closed)
		c.offset.Position -= uint64(held)
	}
	e.cursor = max(e.cursor, intervalAt(e.s.opts.Clock()))
	c.cursor = e.cursor
	if known := e.last; len(data) == 0 && e.told {
		known.cursor = c.cursor
		if known == c {
			return nil
		}
	}
	return e.emit(p.Info.ID, data, c)
}

// emit sends a data event and its control event in one write and one flush.
func (e *eventStream) emit(id stream.ID, data []byte, c control) error {
	var event []byte
	if len(data) > 0 && len(data) <= sharedBytes {
		key := eventKey{id, c.offset.Position - uint64(len(data)), c.offset.Position, c.cursor, c.upToDate, c.closed}
		event = e.s.fanout.event(key, func() []byte { return appendEvent(nil, data, e.as, c) })
	} else {
		buf := e.s.buffers.get(len(data)*4/3 + 512)
		defer e.s.buffers.put(buf)
		*buf = appendEvent(*buf, data, e.as, c)
		event = *buf
	}
	e.told, e.last = true, c
	return e.write(event)
}

// wait returns nil when there is something new. In silence it sends heartbeats, at the
// end a last control event.
func (e *eventStream) wait(request, end context.Context) error {
	for {
		ctx, cancel := context.WithTimeout(end, e.s.opts.SSEHeartbeat)
		err := e.follower.Wait(ctx)
		quiet := ctx.Err() != nil
		cancel()
		switch {
		case request.Err() != nil:
			return request.Err()
		case end.Err() != nil: // also when there is always more to come
			e.last.cursor = max(e.cursor, intervalAt(e.s.opts.Clock()))
			e.write(appendControl(nil, e.last))
			return errEnded
		case err == nil:
			return nil
		case !quiet:
			return err
		}
		if err := e.write(heartbeat); err != nil {
			return err
		}
	}
}

func (e *eventStream) write(b []byte) error {
	_, err := e.a.Write(b)
	if err == nil {
		err = e.a.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errEnded, err)
	}
	return nil
}
