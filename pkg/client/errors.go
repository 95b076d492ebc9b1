package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"firn/pkg/stream"
)

var (
	// ErrUnreachable: there was no answer.
	ErrUnreachable = errors.New("server does not answer")
	// ErrAnswer: the answer is not one of this protocol, or contradicts itself.
	ErrAnswer = errors.New("server gave an answer that makes no sense")
)

// maxProblem bounds what is read of an error's body, in bytes.
const maxProblem = 64 << 10

// Error is the server's answer to a request that it did not fulfil (RFC 9457). It
// wraps the error of package stream that its code stands for, so that
// errors.Is(err, stream.ErrNotFound) works as it does in the server.
type Error struct {
	Status int
	// Code is stable; it is empty if something in between answered.
	Code   string
	Detail string
	// RetryAfter is when the same request may succeed; 0 if the server did not say.
	RetryAfter time.Duration
	// Earliest is the first offset that can still be read; zero unless Code is
	// "offset_trimmed" (X§2.2).
	Earliest stream.Offset
}

func (e *Error) Error() string {
	switch {
	case e.Code == "":
		return fmt.Sprintf("server answered %d %s", e.Status, http.StatusText(e.Status))
	case e.Detail == "":
		return fmt.Sprintf("server answered %d %s", e.Status, e.Code)
	}
	return fmt.Sprintf("%s (%d %s)", e.Detail, e.Status, e.Code)
}

// Unwrap returns the error that the code stands for, nil if there is none.
func (e *Error) Unwrap() error {
	switch e.Code {
	case "bucket_not_found":
		return stream.ErrBucketNotFound
	case "stream_not_found":
		return stream.ErrNotFound
	case "stream_deleted":
		return stream.ErrGone
	case "snapshot_not_found":
		return stream.ErrSnapshotNotFound
	case "offset_trimmed":
		return &stream.TrimmedError{Earliest: e.Earliest}
	case "offset_malformed":
		return stream.ErrOffsetMalformed
	case "offset_other_life":
		return stream.ErrOffsetOtherLife
	case "offset_past_tail":
		return stream.ErrOffsetPastTail
	case "offset_not_boundary":
		return stream.ErrOffsetNotBoundary
	case "cold_unavailable":
		return stream.ErrColdUnavailable
	case "hot_full":
		return stream.ErrHotFull
	case "unavailable", "stopping":
		return stream.ErrUnavailable
	}
	return nil
}

// ReadError makes an [Error] of an answer. It reads the body but does not close it.
func ReadError(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode}
	var p struct{ Code, Detail string }
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	if err == nil && json.Unmarshal(body, &p) == nil {
		e.Code, e.Detail = p.Code, p.Detail
	}
	if s, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(s) * time.Second
	}
	if o, err := stream.ParseOffset(resp.Header.Get("Stream-Earliest-Offset")); err == nil {
		e.Earliest = o
	}
	return e
}
