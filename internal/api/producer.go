package api

import (
	"cmp"
	"net/http"

	"firn/pkg/stream"
)

// parseProducer reads the headers of an idempotent producer, nil when there are none
// (B§5.2.1). A header that is there but empty is an error, not absence.
func parseProducer(h http.Header) (*stream.Producer, error) {
	id, given, err := once(h, headerProducerID)
	epoch, given2, err2 := once(h, headerProducerEpoch)
	seq, given3, err3 := once(h, headerProducerSeq)
	if err = cmp.Or(err, err2, err3); err != nil {
		return nil, err
	}
	if !given && !given2 && !given3 {
		return nil, nil
	}
	if !given || !given2 || !given3 {
		return nil, errProducerPartial
	}
	if id == "" || len(id) > stream.MaxProducerID {
		return nil, errProducerID
	}
	e, ok1 := parseInteger(epoch, stream.MaxProducerNumber)
	n, ok2 := parseInteger(seq, stream.MaxProducerNumber)
	if !ok1 || !ok2 {
		return nil, errProducerNumber
	}
	return &stream.Producer{ID: id, Epoch: e, Seq: n}, nil
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
	seq, given, err := once(h, headerSeq)
	if err != nil || !given {
		return nil, err
	}
	if seq == "" || len(seq) > stream.MaxSeq {
		return nil, errSeq
	}
	value := seq // on its own, so that only who has one pays for it
	return &value, nil
}
