package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"firn/pkg/stream"
)

// parseLifetime reads Stream-TTL and Stream-Expires-At (B§5.1).
func parseLifetime(h http.Header) (stream.Lifetime, error) {
	ttl, sliding, err := once(h, headerTTL)
	at, fixed, err2 := once(h, headerExpiresAt)
	switch {
	case err != nil || err2 != nil:
		return stream.Lifetime{}, errHeaderRepeated
	case sliding && fixed:
		return stream.Lifetime{}, errLifetimeTwice
	case sliding:
		seconds, ok := parseCanonical(ttl, stream.MaxTTL)
		if !ok {
			return stream.Lifetime{}, errTTL
		}
		return stream.Lifetime{Sliding: true, TTL: seconds}, nil
	case fixed:
		t, ok := parseInstant(at)
		if !ok {
			return stream.Lifetime{}, errExpiresAt
		}
		return stream.Lifetime{At: t}, nil
	}
	return stream.Lifetime{}, nil
}

// parseCanonical accepts an integer without leading zeros.
func parseCanonical(s string, most uint64) (uint64, bool) {
	if len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	return parseInteger(s, most)
}

// parseInstant accepts an RFC 3339 timestamp with any offset and fraction. Letters may
// be of either case (RFC 3339 §5.6). A leap second is refused.
func parseInstant(s string) (time.Time, bool) {
	s = strings.ToUpper(s)
	// time.Parse also takes hours of one digit and fractions after a comma.
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || strings.Contains(s, ",") {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() {
		return time.Time{}, false
	}
	return t.UTC(), true
}

// setLifetime shows a lifetime as it was asked for, the same instant in UTC (B§5.5).
func setLifetime(h http.Header, l stream.Lifetime) {
	switch {
	case l.Sliding:
		h.Set(headerTTL, strconv.FormatUint(l.TTL, 10))
	case !l.At.IsZero():
		layout := "2006-01-02T15:04:05.000Z07:00"
		if l.At.Nanosecond()%int(time.Millisecond) != 0 {
			layout = time.RFC3339Nano
		}
		h.Set(headerExpiresAt, l.At.UTC().Format(layout))
	}
}
