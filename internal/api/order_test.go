package api_test

import (
	"net/http"
	"strings"
	"testing"

	"firn/internal/api"
)

// TestAppendChecksInOrder asks for appends with two things wrong at once: the earlier
// one of docs/protocol.md is what the client is told, and nothing has changed.
func TestAppendChecksInOrder(t *testing.T) {
	c, _ := connect(t, api.Options{AppendBytes: 1000})
	const text, json = "Content-Type: text/plain", "Content-Type: application/json"
	producer := func(epoch, seq string) []string {
		return []string{"Producer-Id: p", "Producer-Epoch: " + epoch, "Producer-Seq: " + seq}
	}
	badProducer := []string{"Producer-Id: p", "Producer-Epoch: x", "Producer-Seq: 0"}
	gap, stale, start := producer("5", "7"), producer("4", "0"), producer("6", "1")
	const seq = "Stream-Seq: a" // less than what was accepted

	open := c.create("/ds/trial/open", "application/json", "[0]")
	c.want(200, "POST", "/ds/trial/open", "[1]", append(producer("5", "0"), json, "Stream-Seq: b")...)
	c.create("/ds/trial/closed", "application/json", "[0]")
	c.want(200, "POST", "/ds/trial/closed", "[1]", append(producer("5", "0"), json, "Stream-Seq: b", "Stream-Closed: true")...)
	c.create("/ds/trial/gone", "application/json", "[0]")
	c.want(201, "PUT", "/ds/trial/fork", "", "Stream-Forked-From: /ds/trial/gone")
	c.want(204, "DELETE", "/ds/trial/gone", "")

	for _, tt := range []struct {
		name, stream, body string
		header             []string
		status             int
		code               string
	}{
		{"producer before its stream", "missing", "", badProducer, 400, "producer_number_invalid"},
		{"producer before an empty body", "open", "", append(badProducer, json), 400, "producer_number_invalid"},
		{"producer before the coding", "open", "x", append(badProducer, json, "Content-Encoding: x"), 400, "producer_number_invalid"},
		{"coding before the size", "open", strings.Repeat("x", 1001), []string{json, "Content-Encoding: x"}, 415, "content_encoding_unsupported"},
		{"size before the type", "open", strings.Repeat("x", 1001), nil, 413, "body_too_large"},
		{"size before the stream", "missing", strings.Repeat("x", 1001), []string{json}, 413, "body_too_large"},
		{"empty body before the stream", "missing", "", []string{json}, 400, "body_required"},
		{"empty body before a closed stream", "closed", "", []string{json}, 400, "body_required"},
		{"empty body before the producer's state", "open", "", append(gap, json), 400, "body_required"},
		{"missing type before the stream", "missing", "x", nil, 400, "content_type_required"},
		{"missing type before a closed stream", "closed", "x", nil, 400, "content_type_required"},
		{"broken type before the stream", "missing", "x", []string{"Content-Type: text/"}, 400, "content_type_malformed"},
		{"missing stream before the JSON", "missing", "{", append(gap, json), 404, "stream_not_found"},
		{"missing stream before a close", "missing", "", []string{"Stream-Closed: true"}, 404, "stream_not_found"},
		{"deleted stream before the type", "gone", "x", []string{text}, 410, "stream_deleted"},
		{"closed before the type", "closed", "x", []string{text}, 409, "stream_closed"},
		{"closed before the JSON", "closed", "{", []string{json}, 409, "stream_closed"},
		{"closed before Stream-Seq", "closed", "[2]", []string{json, seq}, 409, "stream_closed"},
		{"closed before a gap", "closed", "[2]", append(gap, json), 409, "stream_closed"},
		{"closed before the start of an epoch", "closed", "[2]", append(start, json), 409, "stream_closed"},
		{"closed before a close with a new body", "closed", "[2]", []string{json, "Stream-Closed: true"}, 409, "stream_closed"},
		{"type before a gap", "open", "x", append(gap, text), 409, "content_type_mismatch"},
		{"type before a stale epoch", "open", "x", append(stale, text), 409, "content_type_mismatch"},
		{"type before a duplicate", "open", "x", append(producer("5", "0"), text), 409, "content_type_mismatch"},
		{"type before Stream-Seq", "open", "x", []string{text, seq}, 409, "content_type_mismatch"},
		{"stale epoch before Stream-Seq", "open", "[2]", append(stale, json, seq), 403, "producer_epoch_stale"},
		{"start of an epoch before Stream-Seq", "open", "[2]", append(start, json, seq), 400, "producer_epoch_start"},
		{"gap before Stream-Seq", "open", "[2]", append(gap, json, seq), 409, "producer_seq_gap"},
		{"Stream-Seq of the next in line", "open", "[2]", append(producer("5", "1"), json, seq), 409, "stream_seq_regression"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := c.do("POST", "/ds/trial/"+tt.stream, tt.body, tt.header...)
			if a.status != tt.status || a.code() != tt.code {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, tt.status, tt.code)
			}
		})
	}
	// A duplicate comes before Stream-Seq: a retry repeats both.
	c.want(204, "POST", "/ds/trial/open", "[1]", append(producer("5", "0"), json, seq)...)

	for _, id := range []string{"open", "closed"} {
		if got := c.want(200, "GET", "/ds/trial/"+id, "").body; got != "[0,1]" {
			t.Errorf("%s holds %s", id, got)
		}
	}
	if got := c.want(200, "HEAD", "/ds/trial/open", "").next(); got[:17] != open[:17] {
		t.Errorf("another life: %s", got)
	}
	c.want(404, "HEAD", "/ds/trial/missing", "")
	// Neither the producer nor Stream-Seq have moved.
	c.want(200, "POST", "/ds/trial/open", "[2]", append(producer("5", "1"), json, "Stream-Seq: ba")...)
}

// Bad JSON is found out last, and the same request with a good body is then new.
func TestRefusedJSONMovesNothing(t *testing.T) {
	c, _ := connect(t, api.Options{})
	const json = "Content-Type: application/json"
	c.create("/ds/trial/s", "application/json", "")
	retry := []string{json, "Producer-Id: p", "Producer-Epoch: 3", "Producer-Seq: 0", "Stream-Seq: 5", "Stream-Closed: true"}
	for _, body := range []string{"[", "[]", "{}{}", "\xff", "\"\xff\"", "nul", "[1,]", "01", "\ufeff1"} {
		if a := c.do("POST", "/ds/trial/s", body, retry...); a.status != http.StatusBadRequest {
			t.Errorf("%q: got %d %s", body, a.status, a.body)
		}
	}
	if h := c.want(200, "HEAD", "/ds/trial/s", "").header; h.Get("Stream-Closed") != "" {
		t.Errorf("a refused append has closed the stream: %v", h)
	}
	c.want(204, "POST", "/ds/trial/s", "[0]", json, "Stream-Seq: 4")
	a := c.want(200, "POST", "/ds/trial/s", "[1]", retry...)
	if a.header.Get("Stream-Closed") != "true" || a.header.Get("Producer-Epoch") != "3" {
		t.Errorf("got %v", a.header)
	}
	if got := c.want(200, "GET", "/ds/trial/s", "").body; got != "[0,1]" {
		t.Errorf("stream holds %s", got)
	}
}
