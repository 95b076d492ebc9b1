package api

import (
	"net/http"

	"firn/pkg/stream"
)

// parseProducer reads the headers of an idempotent producer, nil when there are none
// (B§5.2.1). A header that is there but empty is an error, not absence.
func parseProducer(h http.Header) (*stream.Producer, error) {
	id, epoch, seq := h[headerProducerID], h[headerProducerEpoch], h[headerProducerSeq]
	if id == nil && epoch == nil && seq == nil {
		return nil, nil
	}
	if id == nil || epoch == nil || seq == nil {
		return nil, errProducerPartial
	}
	if len(id) != 1 || id[0] == "" || len(id[0]) > stream.MaxProducerID {
		return nil, errProducerID
	}
	e, ok1 := producerNumber(epoch)
	n, ok2 := producerNumber(seq)
	if !ok1 || !ok2 {
		return nil, errProducerNumber
	}
	return &stream.Producer{ID: id[0], Epoch: e, Seq: n}, nil
}

func producerNumber(values []string) (uint64, bool) {
	if len(values) != 1 {
		return 0, false
	}
	return parseInteger(values[0], stream.MaxProducerNumber)
}

// parseInteger accepts decimal digits only, up to a maximum.
func parseInteger(s string, most uint64) (uint64, bool) {
	if s == "" {
		return 0, false
	}
	var v uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 || v > (most-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// parseSeq reads Stream-Seq, nil when there is none (B§5.2).
func parseSeq(h http.Header) (*string, error) {
	values := h[headerSeq]
	if values == nil {
		return nil, nil
	}
	if len(values) != 1 || values[0] == "" || len(values[0]) > stream.MaxSeq {
		return nil, errSeq
	}
	return &values[0], nil
}
