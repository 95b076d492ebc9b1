package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Stream is a stream as its users see it. It is safe for concurrent use.
type Stream struct {
	target string // the URL without its query
	query  string // what the URL had of one, for every request
	o      Options
}

// NewStream names a stream by its URL, of whatever style its server has. It does not
// ask the server for anything. Errors: [ErrURL].
func NewStream(streamURL string, o Options) (*Stream, error) {
	u, err := url.Parse(streamURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is %w", streamURL, ErrURL)
	}
	s := &Stream{query: u.RawQuery, o: o.withDefaults()}
	u.RawQuery = ""
	s.target = u.String()
	return s, nil
}

// URL returns the URL of the stream.
func (s *Stream) URL() string { return s.at("", nil) }

// at is the URL of a resource of the stream. The parameters are in the order of their
// names, for the sake of caches (B§10.1).
func (s *Stream) at(resource string, q url.Values) string {
	target := s.target
	if resource != "" {
		target = strings.TrimSuffix(target, "/") + resource
	}
	switch own := q.Encode(); {
	case own == "" && s.query == "":
		return target
	case own == "" || s.query == "":
		return target + "?" + own + s.query
	default:
		return target + "?" + s.query + "&" + own
	}
}

// path is what the stream is called in a fork's header (B§4.2).
func (s *Stream) path() string {
	_, rest, _ := strings.Cut(s.target, "://")
	_, path, _ := strings.Cut(rest, "/")
	return "/" + path
}

// Info is what HEAD tells of a stream (B§5.5).
type Info struct {
	ContentType string
	Tail        Offset
	Closed      bool
	// TTL is the sliding lifetime, 0 if there is none; ExpiresAt the absolute one.
	TTL       time.Duration
	ExpiresAt time.Time
	// Snapshot is the offset of the visible snapshot, empty if there is none (X§2.4).
	Snapshot Offset
}

// Head describes the stream. Errors: [ErrUnreachable], [*Error], [ErrAnswer].
func (s *Stream) Head(ctx context.Context) (Info, error) {
	return repeat(ctx, s.o.Retry, func() (Info, error) {
		resp, err := s.o.send(ctx, request{method: http.MethodHead, url: s.URL()})
		if err != nil {
			return Info{}, err
		}
		defer drain(resp)
		return infoOf(resp.Header)
	})
}

func infoOf(h http.Header) (Info, error) {
	i := Info{
		ContentType: h.Get("Content-Type"), Closed: isTrue(h, "Stream-Closed"),
		Snapshot: Offset(h.Get("Stream-Snapshot-Offset")),
	}
	var err error
	if i.Tail, err = nextOffset(h); err != nil {
		return Info{}, err
	}
	if v := h.Get("Stream-TTL"); v != "" {
		if i.TTL, err = time.ParseDuration(v + "s"); err != nil {
			return Info{}, fmt.Errorf("%w: Stream-TTL %q", ErrAnswer, v)
		}
	}
	if v := h.Get("Stream-Expires-At"); v != "" {
		if i.ExpiresAt, err = time.Parse(time.RFC3339, v); err != nil {
			return Info{}, fmt.Errorf("%w: Stream-Expires-At %q", ErrAnswer, v)
		}
	}
	return i, nil
}

// Delete removes the stream (B§5.4). It is not repeated. Errors: [ErrUnreachable],
// [*Error].
func (s *Stream) Delete(ctx context.Context) error {
	return s.o.change(ctx, request{method: http.MethodDelete, url: s.URL()})
}

// change makes one attempt whose answer says no more than that it succeeded.
func (o *Options) change(ctx context.Context, r request) error {
	r.patient = true
	resp, err := o.send(ctx, r)
	if err != nil {
		return err
	}
	drain(resp)
	return nil
}
