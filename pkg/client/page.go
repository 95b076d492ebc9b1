package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// Page is a piece of a stream.
type Page struct {
	// Data is the stream's bytes; of a JSON stream whole messages, one a line. A page
	// without any says that the tail was reached or that the stream has ended.
	Data        []byte
	ContentType string
	// Next is behind Data: where another reader goes on.
	Next Offset
	// UpToDate: Next was the tail when the server answered. Closed: and nothing will
	// ever follow.
	UpToDate, Closed bool

	cursor string // for the next live read (B§10.1)
}

// Messages are the messages of a JSON stream's page, without the line ends. They are
// parts of Data.
func (p Page) Messages() iter.Seq[[]byte] { return stream.Messages(p.Data) }

// Get reads what follows an offset, as much as the server gives at a time (B§5.6).
// Errors: a [*TrimmedError], [stream.ErrNotFound] and others as [*Error],
// [ErrUnreachable], [ErrAnswer].
func (s *Stream) Get(ctx context.Context, from Offset) (Page, error) {
	return repeat(ctx, s.o.Retry, func() (Page, error) { return s.page(ctx, from, url.Values{}) })
}

// page makes one attempt at one page.
func (s *Stream) page(ctx context.Context, from Offset, q url.Values) (Page, error) {
	q.Set("offset", string(from))
	if from == "" {
		q.Set("offset", string(Beginning))
	}
	resp, err := s.o.send(ctx, request{method: http.MethodGet, url: s.at("", q)})
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close()
	h := resp.Header
	p := Page{
		ContentType: h.Get("Content-Type"), cursor: h.Get("Stream-Cursor"),
		UpToDate: isTrue(h, "Stream-Up-To-Date"), Closed: isTrue(h, "Stream-Closed"),
	}
	if p.Next, err = nextOffset(h); err != nil {
		return Page{}, err
	}
	body, err := readAll(resp.Body, s.o.PageBytes)
	if err != nil {
		return Page{}, err
	}
	if p.Data, err = stored(body, p.ContentType); err != nil {
		return Page{}, err
	}
	p.UpToDate = p.UpToDate || p.Closed
	if len(p.Data) == 0 && !p.UpToDate && p.Next == from {
		return Page{}, fmt.Errorf("%w: nothing at %s, which is not the tail", ErrAnswer, from)
	}
	return p, nil
}

// readAll reads up to a limit. Errors: [ErrUnreachable], [ErrAnswer].
func readAll(r io.Reader, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > limit:
		return nil, fmt.Errorf("%w: more than %d bytes at a time", ErrAnswer, limit)
	}
	return b, nil
}

// stored turns what is on the wire into the stream's bytes: an array of messages into
// lines.
func stored(body []byte, contentType string) ([]byte, error) {
	if len(body) == 0 || stream.ModeOf(contentType) != stream.JSON {
		return body, nil
	}
	data, _, err := stream.EncodeJSON(nil, body)
	if err != nil && !errors.Is(err, stream.ErrEmptyArray) {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return data, nil
}
