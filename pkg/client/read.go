package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// maxPage bounds an answer, in bytes. Servers give at most 64 MiB, or one message.
const maxPage = 256 << 20

// Info is what HEAD tells of a stream (B§5.5).
type Info struct {
	ContentType string
	Mode        stream.Mode
	Tail        stream.Offset
	Closed      bool
	// Snapshot is the offset of the visible snapshot, nil if there is none.
	Snapshot *stream.Offset
}

// Page is the answer to a read.
type Page struct {
	// Data is stored bytes; it is empty at the tail.
	Data        []byte
	ContentType string // empty if Data is
	// Next is where the next read goes on.
	Next stream.Offset
	// UpToDate: Next was the tail when the server answered. Closed: and nothing
	// will ever follow.
	UpToDate, Closed bool
	// Cursor goes into the next live read.
	Cursor string
}

// Head describes a stream. Errors: [ErrUnreachable], [*Error], [ErrAnswer].
func (c *Client) Head(ctx context.Context, n stream.Name) (Info, error) {
	resp, err := c.do(ctx, http.MethodHead, c.streamURL(n), nil)
	if err != nil {
		return Info{}, headError(err)
	}
	defer resp.Body.Close()
	h := resp.Header
	info := Info{ContentType: h.Get("Content-Type"), Closed: h.Get("Stream-Closed") == "true"}
	info.Mode = stream.ModeOf(info.ContentType)
	if info.Tail, err = nextOffset(h); err != nil {
		return Info{}, err
	}
	if at := h.Get("Stream-Snapshot-Offset"); at != "" {
		o, err := stream.ParseOffset(at)
		if err != nil {
			return Info{}, fmt.Errorf("%w: snapshot offset %q", ErrAnswer, at)
		}
		info.Snapshot = &o
	}
	return info, nil
}

// headError gives the refusal of a HEAD, which has no body, the code that its
// status means for a stream.
func headError(err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == "" {
		switch e.Status {
		case http.StatusNotFound:
			e.Code, e.Detail = "stream_not_found", stream.ErrNotFound.Error()
		case http.StatusGone:
			e.Code, e.Detail = "stream_deleted", stream.ErrGone.Error()
		case http.StatusServiceUnavailable:
			e.Code, e.Detail = "unavailable", stream.ErrUnavailable.Error()
		}
	}
	return err
}

// Read returns what follows an offset, as much as the server gives at a time; the
// zero offset is the beginning (B§5.6). Errors: [ErrUnreachable], [*Error],
// [ErrAnswer].
func (c *Client) Read(ctx context.Context, n stream.Name, from stream.Offset) (Page, error) {
	return c.read(ctx, n, from, url.Values{})
}

// Poll is Read that waits at the tail for a while (B§5.7). cursor is that of the
// last page, if there was one. A page without data says that nothing came.
func (c *Client) Poll(ctx context.Context, n stream.Name, from stream.Offset, cursor string) (Page, error) {
	q := url.Values{"live": {"long-poll"}}
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return c.read(ctx, n, from, q)
}

func (c *Client) read(ctx context.Context, n stream.Name, from stream.Offset, q url.Values) (Page, error) {
	q.Set("offset", "-1")
	if !from.IsZero() {
		q.Set("offset", from.String())
	}
	resp, err := c.do(ctx, http.MethodGet, c.streamURL(n), q)
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close()
	h := resp.Header
	p := Page{
		ContentType: h.Get("Content-Type"), Cursor: h.Get("Stream-Cursor"),
		UpToDate: h.Get("Stream-Up-To-Date") == "true", Closed: h.Get("Stream-Closed") == "true",
	}
	if p.Next, err = nextOffset(h); err != nil {
		return Page{}, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	switch {
	case err != nil:
		return Page{}, fmt.Errorf("%w: the answer broke off: %w", ErrUnreachable, err)
	case len(body) > maxPage:
		return Page{}, fmt.Errorf("%w: more than %d bytes at a time", ErrAnswer, maxPage)
	}
	if p.Data, err = stored(body, p.ContentType); err != nil {
		return Page{}, err
	}
	// A page that does not lead where it says it does would make the next one skip
	// or repeat bytes.
	if from.Position+uint64(len(p.Data)) != p.Next.Position {
		return Page{}, fmt.Errorf("%w: %d bytes after position %d do not lead to %d",
			ErrAnswer, len(p.Data), from.Position, p.Next.Position)
	}
	return p, nil
}

// stored turns what is on the wire into stored bytes: an array of messages into
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

func nextOffset(h http.Header) (stream.Offset, error) {
	o, err := stream.ParseOffset(h.Get("Stream-Next-Offset"))
	if err != nil {
		return o, fmt.Errorf("%w: next offset %q; is this the URL of a firn server?", ErrAnswer, h.Get("Stream-Next-Offset"))
	}
	return o, nil
}
