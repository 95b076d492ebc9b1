package api

import (
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// liveMode is how a read waits for more.
type liveMode uint8

const (
	catchUp liveMode = iota
	longPoll
	events
)

// readQuery is what a read asks for. Unknown parameters are ignored.
type readQuery struct {
	start  stream.Start
	live   liveMode
	cursor string
}

// parseQuery decodes a query string. A part that cannot be decoded is an error: to
// drop it could turn a read from an offset into a read of everything.
func parseQuery(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errQuery
	}
	return q, nil
}

func parseReadQuery(r *http.Request) (readQuery, error) {
	var out readQuery
	if r.URL.RawQuery == "" {
		return out, nil
	}
	q, err := parseQuery(r)
	if err != nil {
		return out, err
	}
	offset, given, err := single(q, "offset")
	if err != nil {
		return out, err
	}
	if given {
		if out.start, err = stream.ParseStart(offset); err != nil {
			return out, err
		}
	}
	live, isLive, err := single(q, "live")
	if err != nil || !isLive {
		return out, err
	}
	switch live {
	case "long-poll":
		out.live = longPoll
	case "sse":
		out.live = events
	default:
		return out, errLive
	}
	if !given {
		return out, errOffsetMissing
	}
	out.cursor, _, err = single(q, "cursor")
	return out, err
}

// single returns the value of a parameter that may be given once.
func single(q url.Values, name string) (value string, given bool, err error) {
	switch v := q[name]; len(v) {
	case 0:
		return "", false, nil
	case 1:
		return v[0], true, nil
	default:
		return "", false, errQueryRepeated
	}
}
