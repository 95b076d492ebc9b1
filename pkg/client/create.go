package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"firn/pkg/stream"
)

// CreateOptions describes a stream to be created (B§5.1). The zero CreateOptions is
// an open and empty stream of bytes that lives for ever.
type CreateOptions struct {
	// ContentType of the stream (default application/octet-stream; of a fork, that
	// of its source).
	ContentType string
	// TTL ends the stream when it was not used for so long. Whole seconds, a part of
	// one counts as one; 0 is none. ExpiresAt ends it in any case. One of the two.
	TTL       time.Duration
	ExpiresAt time.Time
	// Closed: nothing can be appended to what Data holds.
	Closed bool
	// Data is the first content; of a JSON stream one message, or an array of them.
	Data []byte
	// Fork begins the stream with the content of another one of the same server.
	Fork *Fork
}

// Fork says where a stream branches off from another (B§4.2).
type Fork struct {
	Source *Stream
	// Offset up to which the source is inherited; empty is its tail of the moment.
	Offset Offset
	// Sub moves that forward by bytes, or by messages of a JSON stream. It needs an
	// Offset.
	Sub uint64
}

// Created tells of a stream that was created or was there already.
type Created struct {
	// New: it was not there already. False also if it was created by an attempt
	// whose answer was lost.
	New         bool
	ContentType string
	Tail        Offset
	Closed      bool
}

// Create makes the stream, or confirms that it is there as described. Errors:
// [stream.ErrExists] and others as [*Error], [ErrUnreachable], [ErrAnswer].
func (s *Stream) Create(ctx context.Context, c CreateOptions) (Created, error) {
	r := request{method: http.MethodPut, url: s.URL(), header: c.header(), body: c.Data}
	return repeat(ctx, s.o.Retry, func() (Created, error) {
		resp, err := s.o.send(ctx, r)
		if err != nil {
			return Created{}, err
		}
		defer drain(resp)
		info, err := infoOf(resp.Header)
		return Created{
			New: resp.StatusCode == http.StatusCreated, ContentType: info.ContentType, Tail: info.Tail, Closed: info.Closed,
		}, err
	})
}

func (c CreateOptions) header() http.Header {
	h := make(http.Header)
	switch {
	case c.ContentType != "":
		h.Set("Content-Type", c.ContentType)
	case c.Fork == nil:
		h.Set("Content-Type", stream.DefaultContentType)
	}
	if c.TTL > 0 {
		h.Set("Stream-TTL", strconv.FormatInt(int64((c.TTL+time.Second-1)/time.Second), 10))
	}
	if !c.ExpiresAt.IsZero() {
		h.Set("Stream-Expires-At", c.ExpiresAt.Format(time.RFC3339Nano))
	}
	if c.Closed {
		h.Set("Stream-Closed", "true")
	}
	if f := c.Fork; f != nil {
		h.Set("Stream-Forked-From", f.Source.path())
		if f.Offset != "" {
			h.Set("Stream-Fork-Offset", string(f.Offset))
		}
		if f.Sub > 0 {
			h.Set("Stream-Fork-Sub-Offset", strconv.FormatUint(f.Sub, 10))
		}
	}
	return h
}
