package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"firn/pkg/stream"
)

// AppendOptions says more about an append.
type AppendOptions struct {
	// ContentType must be the stream's (default application/octet-stream).
	ContentType string
	// Seq must be greater, as text, than that of every append before (B§5.2); empty
	// is none. An append that carries one can be repeated: if it was done already,
	// the server answers [stream.ErrSeqRegression].
	Seq string
	// Close closes the stream for good, in the same step.
	Close bool
}

// Append adds data to the stream, all of it or nothing, and returns the new tail. Of a
// JSON stream it is one message, or an array of them. It is not repeated: after an
// [ErrUnreachable] it may have been done. A [Producer] knows how to find out. Other
// errors: a [*ClosedError] and others as [*Error], [ErrAnswer].
func (s *Stream) Append(ctx context.Context, data []byte, a AppendOptions) (Offset, error) {
	h := make(http.Header)
	if len(data) > 0 {
		h.Set("Content-Type", a.ContentType)
		if a.ContentType == "" {
			h.Set("Content-Type", stream.DefaultContentType)
		}
	}
	if a.Seq != "" {
		h.Set("Stream-Seq", a.Seq)
	}
	if a.Close {
		h.Set("Stream-Closed", "true")
	}
	resp, err := s.o.send(ctx, request{method: http.MethodPost, url: s.URL(), header: h, body: data, patient: true})
	if err != nil {
		return "", err
	}
	defer drain(resp)
	return nextOffset(resp.Header)
}

// AppendJSON appends each value as one message. Errors: as of [Stream.Append], those of
// [json.Marshal], and [stream.ErrEmptyArray] if there is none.
func (s *Stream) AppendJSON(ctx context.Context, messages ...any) (Offset, error) {
	if len(messages) == 0 {
		return "", stream.ErrEmptyArray
	}
	// An array, also for a single value: the server takes one level off.
	body, err := json.Marshal(messages)
	if err != nil {
		return "", fmt.Errorf("encode messages: %w", err)
	}
	return s.Append(ctx, body, AppendOptions{ContentType: "application/json"})
}

// End closes the stream for good and returns its final offset (B§5.3). Doing so again
// is no error. Errors: [ErrUnreachable], [*Error], [ErrAnswer].
func (s *Stream) End(ctx context.Context) (Offset, error) {
	return repeat(ctx, s.o.Retry, func() (Offset, error) {
		return s.Append(ctx, nil, AppendOptions{Close: true})
	})
}
