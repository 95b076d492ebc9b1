package api

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"firn/pkg/stream"
)

// headers builds a header from "Name: value" lines.
func headers(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

func TestParseProducer(t *testing.T) {
	long := strings.Repeat("p", stream.MaxProducerID)
	tests := []struct {
		name string
		h    http.Header
		want *stream.Producer
		err  error
	}{
		{"none", headers(), nil, nil},
		{"all", headers("Producer-Id: p", "Producer-Epoch: 1", "Producer-Seq: 2"), &stream.Producer{ID: "p", Epoch: 1, Seq: 2}, nil},
		{"leading zeros", headers("Producer-Id: p", "Producer-Epoch: 00", "Producer-Seq: 007"), &stream.Producer{ID: "p", Seq: 7}, nil},
		{"largest", headers("Producer-Id: "+long, "Producer-Epoch: 9007199254740991", "Producer-Seq: 0"), &stream.Producer{ID: long, Epoch: 1<<53 - 1}, nil},
		{"number too large", headers("Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 9007199254740992"), nil, errProducerNumber},
		{"number far too large", headers("Producer-Id: p", "Producer-Epoch: 99999999999999999999999", "Producer-Seq: 0"), nil, errProducerNumber},
		{"id too long", headers("Producer-Id: p"+long, "Producer-Epoch: 0", "Producer-Seq: 0"), nil, errProducerID},
		{"id empty", headers("Producer-Id:", "Producer-Epoch: 0", "Producer-Seq: 0"), nil, errProducerID},
		{"id repeated", headers("Producer-Id: p", "Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: 0"), nil, errHeaderRepeated},
		{"seq repeated", headers("Producer-Id: p", "Producer-Seq: 0", "Producer-Epoch: 0", "Producer-Seq: 0"), nil, errHeaderRepeated},
		{"id missing", headers("Producer-Epoch: 0", "Producer-Seq: 0"), nil, errProducerPartial},
		{"epoch missing", headers("Producer-Id: p", "Producer-Seq: 0"), nil, errProducerPartial},
		{"seq missing", headers("Producer-Id: p", "Producer-Epoch: 0"), nil, errProducerPartial},
		{"epoch empty", headers("Producer-Id: p", "Producer-Epoch:", "Producer-Seq: 0"), nil, errProducerNumber},
	}
	for _, bad := range []string{"-1", "+1", "1abc", "0xyz", "1e3", "1.0", "1 2", "\u0661"} {
		tests = append(tests, struct {
			name string
			h    http.Header
			want *stream.Producer
			err  error
		}{"seq " + bad, headers("Producer-Id: p", "Producer-Epoch: 0", "Producer-Seq: "+bad), nil, errProducerNumber})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseProducer(tt.h)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestParseLifetime(t *testing.T) {
	tests := []struct {
		header string
		want   string // as HEAD shows it
		err    error
	}{
		{"Stream-TTL: 0", "0", nil},
		{"Stream-TTL: 3600", "3600", nil},
		{"Stream-TTL: 9007199254740", "9007199254740", nil},
		{"Stream-TTL: 9007199254741", "", errTTL},
		{"Stream-TTL: 99999999999999999999", "", errTTL},
		{"Stream-TTL: 00", "", errTTL},
		{"Stream-TTL: 00060", "", errTTL},
		{"Stream-TTL: +60", "", errTTL},
		{"Stream-TTL: -1", "", errTTL},
		{"Stream-TTL: 60.5", "", errTTL},
		{"Stream-TTL: 1e3", "", errTTL},
		{"Stream-TTL: abc", "", errTTL},
		{"Stream-TTL:", "", errTTL},
		{"Stream-Expires-At: 2030-01-02T03:04:05Z", "2030-01-02T03:04:05.000Z", nil},
		{"Stream-Expires-At: 2030-01-02T03:04:05.120Z", "2030-01-02T03:04:05.120Z", nil},
		{"Stream-Expires-At: 2030-01-02t03:04:05z", "2030-01-02T03:04:05.000Z", nil},
		{"Stream-Expires-At: 2030-01-02T03:04:05+02:00", "2030-01-02T01:04:05.000Z", nil},
		{"Stream-Expires-At: 2030-01-02T03:04:05.123456789Z", "2030-01-02T03:04:05.123456789Z", nil},
		{"Stream-Expires-At: 9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z", nil},
		{"Stream-Expires-At: 2030-01-02T03:04:05", "", errExpiresAt},
		{"Stream-Expires-At: 2030-01-02 03:04:05Z", "", errExpiresAt},
		{"Stream-Expires-At: 2030-01-02T3:04:05Z", "", errExpiresAt},
		{"Stream-Expires-At: 2030-01-02T03:04:05,5Z", "", errExpiresAt},
		{"Stream-Expires-At: 2030-01-02T03:04:05+25:00", "", errExpiresAt},
		{"Stream-Expires-At: 2030-02-30T03:04:05Z", "", errExpiresAt},
		{"Stream-Expires-At: 2030-01-02T23:59:60Z", "", errExpiresAt},
		{"Stream-Expires-At: tomorrow", "", errExpiresAt},
		{"Stream-Expires-At:", "", errExpiresAt},
	}
	for _, tt := range tests {
		t.Run(tt.header, func(t *testing.T) {
			l, err := parseLifetime(headers(tt.header))
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			h := http.Header{}
			setLifetime(h, l)
			if got := h.Get("Stream-TTL") + h.Get("Stream-Expires-At"); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := parseLifetime(headers("Stream-TTL: 1", "Stream-Expires-At: 2030-01-02T03:04:05Z")); err != errLifetimeTwice {
		t.Errorf("both: got %v", err)
	}
	if _, err := parseLifetime(headers("Stream-TTL: 1", "Stream-TTL: 1")); err != errHeaderRepeated {
		t.Errorf("repeated: got %v", err)
	}
}

func TestParseFork(t *testing.T) {
	const zero = "Stream-Fork-Offset: 0000000000000000_0000000000000000"
	tests := []struct {
		name string
		h    http.Header
		want string
		sub  uint64
		err  error
	}{
		{"flat", headers("Stream-Forked-From: /v1/stream/a/b"), "default/a/b", 0, nil},
		{"bucketed", headers("Stream-Forked-From: /ds/agents/a%20b"), "agents/a b", 0, nil},
		{"sub-offset 0 alone", headers("Stream-Forked-From: /v1/stream/a", "Stream-Fork-Sub-Offset: 0"), "default/a", 0, nil},
		{"sub-offset", headers("Stream-Forked-From: /v1/stream/a", zero, "Stream-Fork-Sub-Offset: 12"), "default/a", 12, nil},
		{"sub-offset without offset", headers("Stream-Forked-From: /v1/stream/a", "Stream-Fork-Sub-Offset: 1"), "", 0, errForkSubOffset},
		{"sub-offset signed", headers("Stream-Forked-From: /v1/stream/a", zero, "Stream-Fork-Sub-Offset: +1"), "", 0, errForkSubOffset},
		{"sub-offset with zeros", headers("Stream-Forked-From: /v1/stream/a", zero, "Stream-Fork-Sub-Offset: 05"), "", 0, errForkSubOffset},
		{"sub-offset without source", headers("Stream-Fork-Sub-Offset: 0"), "", 0, errForkHeaders},
		{"offset without source", headers(zero), "", 0, errForkHeaders},
		{"offset now", headers("Stream-Forked-From: /v1/stream/a", "Stream-Fork-Offset: now"), "", 0, stream.ErrOffsetMalformed},
		{"empty", headers("Stream-Forked-From:"), "", 0, errForkedFrom},
		{"other root", headers("Stream-Forked-From: /v2/stream/a"), "", 0, errForkedFrom},
		{"whole URL", headers("Stream-Forked-From: http://h/v1/stream/a"), "", 0, errForkedFrom},
		{"query", headers("Stream-Forked-From: /v1/stream/a?offset=1"), "", 0, errForkedFrom},
		{"bucket alone", headers("Stream-Forked-From: /ds/agents"), "", 0, errForkedFrom},
		{"snapshot", headers("Stream-Forked-From: /ds/agents/a/snapshot"), "", 0, errForkedFrom},
		{"escaped slash", headers("Stream-Forked-From: /ds/agents/a%2Fb"), "", 0, stream.ErrStreamName},
		{"reserved", headers("Stream-Forked-From: /v1/stream/__ds/x"), "", 0, stream.ErrStreamName},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseFork(tt.h)
			if !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want %v", err, tt.err)
			}
			if err == nil && (got.Source.String() != tt.want || got.SubOffset != tt.sub) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestWantsClosed(t *testing.T) {
	tests := map[string]bool{"true": true, "TRUE": true, "True": true, "false": false, "1": false, "yes": false, "": false}
	for value, want := range tests {
		if got, err := wantsClosed(headers("Stream-Closed: " + value)); got != want || err != nil {
			t.Errorf("%q: got %t", value, got)
		}
	}
	if got, err := wantsClosed(http.Header{}); got || err != nil {
		t.Error("absent header closes")
	}
}

func TestMatches(t *testing.T) {
	const tag, gzipped, zstd = `"id:0:5"`, `"id:0:5-gzip"`, `"id:0:5-zstd"`
	tests := []struct {
		held, accepted string
		want           string
	}{
		{tag, "-", tag},
		{"W/" + tag, "-", tag},
		{`"a", ` + tag, "-", tag},
		{`"a",W/` + tag + ` , "b"`, "-", tag},
		{`*`, "-", tag},
		{`"a,b", *`, "-", tag},
		{`"id:0:5:c"`, "-", ""},
		{`"id:0:5-"`, "-", ""},
		{`"id:0:5-br"`, "br", ""},
		{`"id:0:5-gzip-gzip"`, "gzip", ""},
		{`id:0:5`, "-", ""},
		{`"id:0:5`, "-", ""},
		{`"x\"id:0:5"`, "-", ""},
		{``, "-", ""},
		{gzipped, "-", gzipped},
		{zstd, "-", zstd},
		{"W/" + gzipped, "gzip", gzipped},
		{gzipped, "zstd, gzip;q=0.1", gzipped},
		{gzipped, "*", gzipped},
		{zstd, "*", zstd},
		{tag, "gzip", tag},
		{gzipped + ", " + tag, "gzip", gzipped},
		{gzipped, "", ""},
		{gzipped, "identity", ""},
		{gzipped, "br, zstd", ""},
		{gzipped, "gzip;q=0, *", ""},
		{gzipped + ", " + tag, "identity", tag},
		{tag, "gzip, identity;q=0", ""},
		{tag, "gzip, *;q=0", ""},
	}
	for _, tt := range tests {
		h := headers("If-None-Match: " + tt.held)
		if tt.accepted != "-" {
			h.Set("Accept-Encoding", tt.accepted)
		}
		if got := heldTag(&http.Request{Header: h}, tag); got != tt.want {
			t.Errorf("%s of a client that accepts %s: got %q, want %q", tt.held, tt.accepted, got, tt.want)
		}
	}
	if got := heldTag(&http.Request{Header: http.Header{}}, tag); got != "" {
		t.Errorf("absent header holds %s", got)
	}
}

func TestCheckEncoding(t *testing.T) {
	tests := map[string]error{
		"identity": nil, "Identity": nil, "": nil, "identity, identity": nil,
		"gzip": errEncoding, "br": errEncoding, "gzip, gzip": errEncoding, "identity, gzip": errEncoding,
	}
	for value, want := range tests {
		if got := checkEncoding(&http.Request{Header: headers("Content-Encoding: " + value)}); got != want {
			t.Errorf("%q: got %v", value, got)
		}
	}
}
