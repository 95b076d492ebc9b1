package api

import (
	"cmp"
	"net/http"
	"strings"

	"firn/pkg/stream"
	"firn/tier"
)

// createStream serves PUT of a stream: create it, or confirm that it exists as asked
// for (B§5.1), or fork it from another (B§4.2).
func (s *Server) createStream(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	req := tier.CreateRequest{Name: name}
	if req.Closed, err = wantsClosed(r.Header); err != nil {
		return err
	}
	if req.ContentType, err = parseContentType(r.Header); err != nil {
		return err
	}
	if req.Lifetime, err = parseLifetime(r.Header); err != nil {
		return err
	}
	if req.Fork, err = parseFork(r.Header); err != nil {
		return err
	}
	body, err := s.bodies.read(a, r)
	if err != nil {
		return err
	}
	defer body.release()
	req.Body = body.bytes

	info, created, err := s.store.Create(r.Context(), req)
	if err != nil {
		return err
	}
	h := a.Header()
	h.Set(headerContentType, info.ContentType)
	h.Set(headerNextOffset, info.Tail.String())
	setTrue(h, headerClosed, info.Closed)
	if !created {
		a.WriteHeader(http.StatusOK)
		return nil
	}
	h.Set(headerLocation, s.location(r, r.URL.EscapedPath()))
	a.WriteHeader(http.StatusCreated)
	return nil
}

// wantsClosed: any value but "true" counts as absent (B§4.1).
func wantsClosed(h http.Header) (bool, error) {
	v, _, err := once(h, headerClosed)
	return strings.EqualFold(v, "true"), err
}

// parseContentType reads a Content-Type, "" when there is none.
func parseContentType(h http.Header) (string, error) {
	v, given, err := once(h, headerContentType)
	if err == nil && given {
		err = checkContentType(v)
	}
	return v, err
}

// checkContentType knows the types that nearly every request has without parsing them.
func checkContentType(s string) error {
	switch s {
	case "application/json", "text/plain", stream.DefaultContentType:
		return nil
	}
	return stream.CheckContentType(s)
}

// parseFork reads the fork headers, nil when the request does not fork.
func parseFork(h http.Header) (*tier.ForkRequest, error) {
	from, forks, err := once(h, headerForkedFrom)
	at, anchored, err2 := once(h, headerForkOffset)
	sub, shifted, err3 := once(h, headerForkSubOffset)
	if err = cmp.Or(err, err2, err3); err != nil {
		return nil, err
	}
	if !forks {
		if anchored || shifted {
			return nil, errForkHeaders
		}
		return nil, nil
	}
	source, err := nameOfPath(from)
	if err != nil {
		return nil, err
	}
	fork := &tier.ForkRequest{Source: source}
	if anchored {
		o, err := stream.ParseOffset(at)
		if err != nil {
			return nil, err
		}
		fork.Offset = &o
	}
	if shifted {
		n, ok := parseCanonical(sub, stream.MaxProducerNumber)
		if !ok || n > 0 && !anchored {
			return nil, errForkSubOffset
		}
		fork.SubOffset = n
	}
	return fork, nil
}
