package api

import (
	"net/http"
	"strconv"

	"firn/pkg/stream"
	"firn/tier"
)

// appendStream serves POST to a stream: append, close, or both in one step (B§5.2,
// B§5.3). What can be seen without the stream is checked first: headers, then the body.
func (s *Server) appendStream(a *answer, r *http.Request) error {
	name, err := nameOf(r)
	if err != nil {
		return err
	}
	req := tier.AppendRequest{Name: name}
	if req.Close, err = wantsClosed(r.Header); err != nil {
		return err
	}
	if req.Producer, err = parseProducer(r.Header); err != nil {
		return err
	}
	if req.Seq, err = parseSeq(r.Header); err != nil {
		return err
	}
	contentType, _, err := once(r.Header, headerContentType)
	if err != nil {
		return err
	}
	body, err := s.bodies.read(a, r)
	if err != nil {
		return err
	}
	defer body.release()
	req.Body = body.bytes
	if len(req.Body) > 0 {
		req.ContentType = contentType
		if req.ContentType == "" {
			return errContentTypeMissing
		}
		if err := checkContentType(req.ContentType); err != nil {
			return err
		}
	} else if !req.Close {
		return stream.ErrEmptyBody
	}

	res, err := s.store.Append(r.Context(), req)
	if err != nil {
		return err
	}
	h := a.Header()
	h.Set(headerNextOffset, res.Tail.String())
	setTrue(h, headerClosed, res.Closed)
	if p := res.Producer; p != nil {
		h.Set(headerProducerEpoch, strconv.FormatUint(p.Epoch, 10))
		h.Set(headerProducerSeq, strconv.FormatUint(p.Seq, 10))
	}
	// Only a producer's new data is 200; its retries and everyone's closes are 204.
	if req.Producer != nil && len(req.Body) > 0 && !res.Duplicate {
		a.WriteHeader(http.StatusOK)
	} else {
		a.WriteHeader(http.StatusNoContent)
	}
	return nil
}
