package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"firn/pkg/stream"
)

func TestProblemOf(t *testing.T) {
	tail := stream.Offset{Life: 1, Position: 2}
	const token = "0000000000000001_0000000000000002"
	tests := []struct {
		err    error
		status int
		code   string
		header http.Header
	}{
		{&stream.ClosedError{Tail: tail}, 409, "stream_closed", headers("Stream-Closed: true", "Stream-Next-Offset: "+token)},
		{&stream.TrimmedError{Earliest: tail}, 410, "offset_trimmed", headers("Stream-Earliest-Offset: " + token)},
		{&stream.StaleEpochError{Current: 7}, 403, "producer_epoch_stale", headers("Producer-Epoch: 7")},
		{&stream.SeqGapError{Expected: 3, Received: 9}, 409, "producer_seq_gap", headers("Producer-Expected-Seq: 3", "Producer-Received-Seq: 9")},
		{&stream.JSONError{}, 400, "json_invalid", headers()},
		{stream.ErrNotFound, 404, "stream_not_found", headers()},
		{stream.ErrGone, 410, "stream_deleted", headers()},
		{stream.ErrNameBlocked, 409, "stream_name_blocked", headers()},
		{stream.ErrContentType, 409, "content_type_mismatch", headers()},
		{stream.ErrForkSourceGone, 409, "fork_source_deleted", headers()},
		{stream.ErrProducerStart, 400, "producer_epoch_start", headers()},
		{stream.ErrProducerLimit, 429, "producer_limit", headers("Retry-After: 60")},
		{stream.ErrHotFull, 503, "hot_full", headers("Retry-After: 5")},
		{stream.ErrColdUnavailable, 503, "cold_unavailable", headers("Retry-After: 2")},
		{stream.ErrUnavailable, 503, "unavailable", headers("Retry-After: 1")},
		{errInflight, 503, "too_many_bytes_in_flight", headers("Retry-After: 1")},
		{errOutgoing, 503, "too_many_bytes_unread", headers("Retry-After: 1")},
		{errEncoding, 415, "content_encoding_unsupported", headers("Accept-Encoding: identity")},
		{context.DeadlineExceeded, 503, "unavailable", headers("Retry-After: 1")},
	}
	for _, tt := range tests {
		t.Run(tt.code, func(t *testing.T) {
			p, known := problemOf(fmt.Errorf("get segment s3://secret: %w", tt.err))
			if !known || p.Status != tt.status || p.Code != tt.code || strings.Contains(p.Detail, "secret") {
				t.Errorf("got %+v, known %t", p, known)
			}
			if fmt.Sprint(p.header) != fmt.Sprint(tt.header) {
				t.Errorf("got headers %v, want %v", p.header, tt.header)
			}
		})
	}
}

func TestRulesAreComplete(t *testing.T) {
	codes := map[string]error{}
	for _, r := range rules {
		if other, taken := codes[r.code]; taken && r.code != "unavailable" {
			t.Errorf("%v and %v share the code %s", r.err, other, r.code)
		}
		codes[r.code] = r.err
		if needs := r.status == 503 || r.status == 429; needs != (r.retry > 0) {
			t.Errorf("%s: status %d with Retry-After %d", r.code, r.status, r.retry)
		}
		if http.StatusText(r.status) == "" {
			t.Errorf("%s: status %d", r.code, r.status)
		}
	}
}

// answerOf renders err as the answer to a request.
func answerOf(s *Server, r *http.Request, err error) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.fail(newAnswer(w, r, time.Minute), r, err)
	return w
}

func TestUnknownErrorsAreHiddenAndLogged(t *testing.T) {
	var log bytes.Buffer
	s := &Server{bodies: newBodies(1, 1, time.Minute), opts: Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
	w := answerOf(s, httptest.NewRequest("GET", "/v1/stream/x", nil), errors.New("pebble: secret"))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || !strings.Contains(w.Body.String(), `"code":"internal"`) {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "secret") {
		t.Errorf("logged %q", log.String())
	}
	log.Reset()
	for _, err := range []error{stream.ErrNotFound, stream.ErrColdUnavailable, errInflight} {
		if answerOf(s, httptest.NewRequest("GET", "/v1/stream/x", nil), err); log.Len() > 0 {
			t.Errorf("%v: logged %q", err, log.String())
		}
	}
}

func TestFailureAfterTheHeaderBreaksOff(t *testing.T) {
	s := New(Options{})
	r := httptest.NewRequest("GET", "/", nil)
	a := newAnswer(httptest.NewRecorder(), r, time.Minute)
	a.WriteHeader(http.StatusOK)
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	s.fail(a, r, errors.New("late"))
	t.Error("went on")
}
