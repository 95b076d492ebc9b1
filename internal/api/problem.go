package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"firn/pkg/stream"
)

// problem is an error as clients see it (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	// Code is stable: programs compare it, people read Detail.
	Code string `json:"code"`

	header http.Header
}

// rule says how an error is answered.
type rule struct {
	err    error
	status int
	code   string
	// retry is the Retry-After in seconds, 0 for none.
	retry int
}

// rules are all errors that clients learn of, beside those of typedProblem. Anything
// else is a failure of the server: answered 500, logged, its text kept from the client.
var rules = []rule{
	{errNoRoute, 404, "no_such_resource", 0},
	{errReserved, 400, "name_reserved", 0},
	{errMethod, 405, "method_not_allowed", 0},
	{errQuery, 400, "query_malformed", 0},
	{errQueryRepeated, 400, "query_repeated", 0},
	{errLive, 400, "live_invalid", 0},
	{errLiveBootstrap, 400, "live_not_supported", 0},
	{errOffsetMissing, 400, "offset_required", 0},
	{errCursor, 400, "cursor_invalid", 0},
	{errLimit, 400, "limit_invalid", 0},
	{errContentTypeMissing, 400, "content_type_required", 0},
	{errHeaderRepeated, 400, "header_repeated", 0},
	{errTTL, 400, "ttl_invalid", 0},
	{errExpiresAt, 400, "expires_at_invalid", 0},
	{errLifetimeTwice, 400, "lifetime_conflict", 0},
	{errForkedFrom, 400, "forked_from_invalid", 0},
	{errForkHeaders, 400, "fork_headers_invalid", 0},
	{errForkSubOffset, 400, "fork_sub_offset_invalid", 0},
	{errProducerPartial, 400, "producer_headers_incomplete", 0},
	{errProducerID, 400, "producer_id_invalid", 0},
	{errProducerNumber, 400, "producer_number_invalid", 0},
	{errSeq, 400, "stream_seq_invalid", 0},
	{errEncoding, 415, "content_encoding_unsupported", 0},
	{errBodyTooLarge, 413, "body_too_large", 0},
	{errBodyCut, 400, "body_incomplete", 0},
	{errBodyTimeout, 408, "body_timeout", 0},
	{errBodyUnexpected, 400, "body_unexpected", 0},
	{errInflight, 503, "too_many_bytes_in_flight", 1},
	{errOutgoing, 503, "too_many_bytes_unread", 1},
	{errDraining, 503, "stopping", 1},

	{stream.ErrBucketName, 400, "bucket_name_invalid", 0},
	{stream.ErrStreamName, 400, "stream_name_invalid", 0},
	{stream.ErrContentTypeMalformed, 400, "content_type_malformed", 0},
	{stream.ErrOffsetMalformed, 400, "offset_malformed", 0},
	{stream.ErrOffsetOtherLife, 400, "offset_other_life", 0},
	{stream.ErrOffsetPastTail, 400, "offset_past_tail", 0},
	{stream.ErrOffsetNotBoundary, 400, "offset_not_boundary", 0},
	{stream.ErrEmptyBody, 400, "body_required", 0},
	{stream.ErrEmptyArray, 400, "array_empty", 0},

	{stream.ErrBucketNotFound, 404, "bucket_not_found", 0},
	{stream.ErrBucketExists, 409, "bucket_exists", 0},
	{stream.ErrBucketNotEmpty, 409, "bucket_not_empty", 0},
	{stream.ErrBucketReserved, 409, "bucket_reserved", 0},

	{stream.ErrNotFound, 404, "stream_not_found", 0},
	{stream.ErrGone, 410, "stream_deleted", 0},
	{stream.ErrExists, 409, "stream_exists", 0},
	{stream.ErrNameBlocked, 409, "stream_name_blocked", 0},
	{stream.ErrContentType, 409, "content_type_mismatch", 0},
	{stream.ErrSeqRegression, 409, "stream_seq_regression", 0},
	{stream.ErrProducerLimit, 429, "producer_limit", 60},
	{stream.ErrProducerStart, 400, "producer_epoch_start", 0},

	{stream.ErrForkSourceNotFound, 404, "fork_source_not_found", 0},
	{stream.ErrForkSourceGone, 409, "fork_source_deleted", 0},
	{stream.ErrForkSubOffset, 400, "fork_sub_offset_past_data", 0},

	{stream.ErrSnapshotNotFound, 404, "snapshot_not_found", 0},
	{stream.ErrSnapshotLatest, 409, "snapshot_is_latest", 0},
	{stream.ErrSnapshotPastTail, 409, "snapshot_past_tail", 0},
	{stream.ErrSnapshotTooLarge, 413, "snapshot_too_large", 0},

	{stream.ErrHotFull, 503, "hot_full", 5},
	{stream.ErrColdUnavailable, 503, "cold_unavailable", 2},
	{stream.ErrUnavailable, 503, "unavailable", 1},
	{context.Canceled, 503, "unavailable", 1},
	{context.DeadlineExceeded, 503, "unavailable", 1},
}

var internalProblem = newProblem(http.StatusInternalServerError, "internal", "the server failed")

func newProblem(status int, code, detail string) problem {
	return problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail, header: http.Header{}}
}

// problemOf finds the answer to an error; known is false for failures of the server.
// The detail is the text of the error that matched: what wraps it may name things that
// are no business of clients.
func problemOf(err error) (p problem, known bool) {
	if p, ok := typedProblem(err); ok {
		return p, true
	}
	for _, r := range rules {
		if !errors.Is(err, r.err) {
			continue
		}
		p := newProblem(r.status, r.code, r.err.Error())
		if r.retry > 0 {
			p.header.Set(headerRetryAfter, strconv.Itoa(r.retry))
		}
		if r.err == errEncoding {
			p.header.Set("Accept-Encoding", "identity") // RFC 9110 §15.5.16
		}
		return p, true
	}
	return internalProblem, false
}

// typedProblem answers the errors that carry values for headers.
func typedProblem(err error) (problem, bool) {
	var (
		closed  *stream.ClosedError
		trimmed *stream.TrimmedError
		stale   *stream.StaleEpochError
		gap     *stream.SeqGapError
		syntax  *stream.JSONError
		p       problem
	)
	switch {
	case errors.As(err, &closed):
		p = newProblem(http.StatusConflict, "stream_closed", closed.Error())
		p.header.Set(headerClosed, "true")
		p.header.Set(headerNextOffset, closed.Tail.String())
	case errors.As(err, &trimmed):
		p = newProblem(http.StatusGone, "offset_trimmed", trimmed.Error())
		p.header.Set(headerEarliest, trimmed.Earliest.String())
	case errors.As(err, &stale):
		p = newProblem(http.StatusForbidden, "producer_epoch_stale", stale.Error())
		p.header.Set(headerProducerEpoch, strconv.FormatUint(stale.Current, 10))
	case errors.As(err, &gap):
		p = newProblem(http.StatusConflict, "producer_seq_gap", gap.Error())
		p.header.Set(headerExpectedSeq, strconv.FormatUint(gap.Expected, 10))
		p.header.Set(headerReceivedSeq, strconv.FormatUint(gap.Received, 10))
	case errors.As(err, &syntax):
		p = newProblem(http.StatusBadRequest, "json_invalid", syntax.Error())
	default:
		return problem{}, false
	}
	return p, true
}

// statusClientGone marks in the metrics a request whose client left. It is never sent.
const statusClientGone = 499

// fail answers a request that ended with an error. When the header is already out,
// the transfer is broken off, so that the client cannot take a part for the whole.
func (s *Server) fail(a *answer, r *http.Request, err error) {
	// A stalled or cut body ends the context, too; its sender may still be listening.
	gone := r.Context().Err() != nil && errors.Is(err, context.Canceled)
	p, known := problemOf(err)
	var controlled controlProblem
	if a.control {
		p.Status, p.header, controlled, known = controlProblemOf(err)
	}
	if !known && !gone {
		s.opts.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	switch {
	case a.committed:
		panic(http.ErrAbortHandler)
	case gone:
		a.status = statusClientGone
		panic(http.ErrAbortHandler)
	}
	if errors.Is(err, errBodyTimeout) {
		s.bodies.abandon(a, r)
	} else {
		s.bodies.discard(a, r)
	}
	if a.control {
		writeError(a, r, p.Status, p.header, "application/json", controlled)
	} else {
		writeProblem(a, r, p)
	}
}

func writeProblem(a *answer, r *http.Request, p problem) {
	writeError(a, r, p.Status, p.header, "application/problem+json", p)
}

func writeError(a *answer, r *http.Request, status int, header http.Header, contentType string, v any) {
	h := a.Header()
	for name, values := range header {
		h[name] = values
	}
	if r.Method == http.MethodHead {
		// No body, so nothing that describes one: some clients wait for it.
		a.varies()
		a.WriteHeader(status)
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	h.Set(headerContentType, contentType)
	a.send(status, body)
}
