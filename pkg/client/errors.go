package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"firn/pkg/stream"
)

var (
	// ErrURL: not the URL of a server or a stream.
	ErrURL = errors.New("not the URL of a server: write it as in " + DefaultURL)
	// ErrUnreachable: there was no answer, or only a part of one. What was asked for
	// may have been done all the same.
	ErrUnreachable = errors.New("server does not answer")
	// ErrAnswer: the answer is not one of this protocol, or contradicts itself.
	ErrAnswer = errors.New("server gave an answer that makes no sense")
	// ErrNotJSON: the stream has no messages.
	ErrNotJSON = errors.New("not a stream of JSON messages")
	// ErrEpochUsed: the server knows a producer's batch that was never sent. Its epoch
	// was used before, so that new data is taken for old and dropped.
	ErrEpochUsed = errors.New("producer epoch was used before: begin with a greater one")
	// ErrProducerClosed: an append after Close or End.
	ErrProducerClosed = errors.New("producer is closed")
)

// ClosedError: the stream is closed, nothing can be appended (B§5.2).
type ClosedError struct{ Final Offset }

func (e *ClosedError) Error() string { return fmt.Sprintf("stream is closed, it ends at %s", e.Final) }

// TrimmedError: the offset is below the earliest one that can be read; a snapshot
// stands for what was before (X§2.2). [Stream.Sync] goes on from there.
type TrimmedError struct{ Earliest Offset }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("offset is below the earliest retained one, %s", e.Earliest)
}

// Error is the server's answer to a request that it did not fulfil (RFC 9457). It
// wraps what the answer means:
//
//   - a [*ClosedError], a [*TrimmedError], a [*stream.StaleEpochError] or a
//     [*stream.SeqGapError], whichever server said it;
//   - an error of package stream such as [stream.ErrNotFound], by its Code.
type Error struct {
	Status int
	// Code is stable; it is empty if the server has no such codes, as in answers to
	// HEAD, or if something in between answered.
	Code string
	// Detail says it to people; of an answer in plain text it is the first line.
	Detail string
	Header http.Header
	// RetryAfter is when the same request may succeed; 0 if the server did not say.
	RetryAfter time.Duration

	url string // that answered, behind all redirects
}

func (e *Error) Error() string {
	switch {
	case e.Detail != "" && e.Code != "":
		return fmt.Sprintf("%s (%d %s)", e.Detail, e.Status, e.Code)
	case e.Detail != "":
		return fmt.Sprintf("%s (%d)", e.Detail, e.Status)
	case e.Code != "":
		return fmt.Sprintf("server answered %d %s", e.Status, e.Code)
	case e.Unwrap() != nil:
		return fmt.Sprintf("%s (%d)", e.Unwrap(), e.Status)
	}
	return fmt.Sprintf("server answered %d %s", e.Status, http.StatusText(e.Status))
}

// Unwrap returns what the answer means, nil if no more than its status.
func (e *Error) Unwrap() error {
	h := e.Header
	switch e.Status {
	case http.StatusConflict:
		if isTrue(h, "Stream-Closed") {
			return &ClosedError{Final: Offset(h.Get("Stream-Next-Offset"))}
		}
		expected, err := strconv.ParseUint(h.Get("Producer-Expected-Seq"), 10, 64)
		received, err2 := strconv.ParseUint(h.Get("Producer-Received-Seq"), 10, 64)
		if err == nil && err2 == nil {
			return &stream.SeqGapError{Expected: expected, Received: received}
		}
	case http.StatusForbidden:
		if current, err := strconv.ParseUint(h.Get("Producer-Epoch"), 10, 64); err == nil {
			return &stream.StaleEpochError{Current: current}
		}
	case http.StatusGone:
		if earliest := h.Get("Stream-Earliest-Offset"); earliest != "" {
			return &TrimmedError{Earliest: Offset(earliest)}
		}
	}
	if e.Code == "" {
		return ofStatus[e.Status]
	}
	return ofCode[e.Code]
}

// ofStatus is what answers without a code mean for a stream.
var ofStatus = map[int]error{
	http.StatusNotFound: stream.ErrNotFound,
	http.StatusGone:     stream.ErrGone,
}

// ofCode is what the codes of docs/protocol.md mean, but for those that carry a value.
var ofCode = map[string]error{
	"bucket_name_invalid":       stream.ErrBucketName,
	"bucket_not_found":          stream.ErrBucketNotFound,
	"bucket_exists":             stream.ErrBucketExists,
	"bucket_not_empty":          stream.ErrBucketNotEmpty,
	"bucket_reserved":           stream.ErrBucketReserved,
	"stream_name_invalid":       stream.ErrStreamName,
	"stream_not_found":          stream.ErrNotFound,
	"stream_deleted":            stream.ErrGone,
	"stream_exists":             stream.ErrExists,
	"stream_name_blocked":       stream.ErrNameBlocked,
	"content_type_malformed":    stream.ErrContentTypeMalformed,
	"content_type_mismatch":     stream.ErrContentType,
	"stream_seq_regression":     stream.ErrSeqRegression,
	"body_required":             stream.ErrEmptyBody,
	"array_empty":               stream.ErrEmptyArray,
	"producer_limit":            stream.ErrProducerLimit,
	"producer_epoch_start":      stream.ErrProducerStart,
	"fork_source_not_found":     stream.ErrForkSourceNotFound,
	"fork_source_deleted":       stream.ErrForkSourceGone,
	"fork_sub_offset_past_data": stream.ErrForkSubOffset,
	"snapshot_not_found":        stream.ErrSnapshotNotFound,
	"snapshot_is_latest":        stream.ErrSnapshotLatest,
	"snapshot_past_tail":        stream.ErrSnapshotPastTail,
	"snapshot_too_large":        stream.ErrSnapshotTooLarge,
	"offset_malformed":          stream.ErrOffsetMalformed,
	"offset_other_life":         stream.ErrOffsetOtherLife,
	"offset_past_tail":          stream.ErrOffsetPastTail,
	"offset_not_boundary":       stream.ErrOffsetNotBoundary,
	"cold_unavailable":          stream.ErrColdUnavailable,
	"hot_full":                  stream.ErrHotFull,
	"unavailable":               stream.ErrUnavailable,
	"stopping":                  stream.ErrUnavailable,
}

// maxProblem bounds what is read of an error's body, in bytes.
const maxProblem = 64 << 10

// maxDetail bounds what is told of an error's body in plain text, in bytes.
const maxDetail = 200

// ReadError makes an [Error] of an answer. It reads the body but does not close it.
func ReadError(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Header: resp.Header}
	if resp.Request != nil {
		e.url = resp.Request.URL.String()
	}
	var p struct{ Code, Detail string }
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil && json.Unmarshal(body, &p) == nil {
		e.Code, e.Detail = p.Code, p.Detail
	} else if t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); t == "text/plain" {
		line, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), maxDetail)])), "\n")
		e.Detail = strings.ToValidUTF8(line, "")
	}
	if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	return e
}
