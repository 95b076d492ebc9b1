package api

import (
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
	req := tier.CreateRequest{Name: name, Closed: wantsClosed(r.Header)}
	if types := r.Header[headerContentType]; types != nil {
		if err := checkContentType(types[0]); err != nil {
			return err
		}
		req.ContentType = types[0]
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
func wantsClosed(h http.Header) bool {
	v := h[headerClosed]
	return len(v) == 1 && strings.EqualFold(v[0], "true")
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
	from, at, sub := h[headerForkedFrom], h[headerForkOffset], h[headerForkSubOffset]
	if from == nil {
		if at != nil || sub != nil {
			return nil, errForkHeaders
		}
		return nil, nil
	}
	if len(from) != 1 {
		return nil, errForkedFrom
	}
	source, err := nameOfPath(from[0])
	if err != nil {
		return nil, err
	}
	fork := &tier.ForkRequest{Source: source}
	if at != nil {
		if len(at) != 1 {
			return nil, stream.ErrOffsetMalformed
		}
		o, err := stream.ParseOffset(at[0])
		if err != nil {
			return nil, err
		}
		fork.Offset = &o
	}
	if sub != nil {
		n, ok := parseCanonical(sub, stream.MaxProducerNumber)
		if !ok || n > 0 && at == nil {
			return nil, errForkSubOffset
		}
		fork.SubOffset = n
	}
	return fork, nil
}
