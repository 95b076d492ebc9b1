package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// Bootstrap is the latest snapshot and the updates after it, as they arrive (X§3).
// The caller reads the parts with NextPart and closes it. Most programs want [Stream.Sync].
type Bootstrap struct {
	// Snapshot is the offset of the snapshot; [Beginning]: there is none, and the
	// first part is empty.
	Snapshot Offset
	// Next is behind the last part: where reading goes on.
	Next Offset
	// UpToDate: Next was the tail when the server answered. Otherwise there is more,
	// which a bootstrap does not hold. Closed: nothing will ever follow.
	UpToDate, Closed bool

	body  io.Closer
	parts *multipart.Reader
}

// Part is one part of a [Bootstrap]: first the snapshot, then updates, one message
// each, or of a stream without messages all in one. It is valid until the next one.
type Part struct {
	io.Reader
	ContentType string
}

// Bootstrap begins a bootstrap. Errors: [stream.ErrNotFound] and others as [*Error],
// [ErrUnreachable], [ErrAnswer].
func (s *Stream) Bootstrap(ctx context.Context) (*Bootstrap, error) {
	return repeat(ctx, s.o.Retry, func() (*Bootstrap, error) { return s.bootstrap(ctx) })
}

func (s *Stream) bootstrap(ctx context.Context) (*Bootstrap, error) {
	resp, err := s.o.send(ctx, request{method: http.MethodGet, url: s.at("/bootstrap", nil)})
	if err != nil {
		return nil, err
	}
	h := resp.Header
	t, params, _ := mime.ParseMediaType(h.Get("Content-Type"))
	b := &Bootstrap{
		Snapshot: Offset(h.Get("Stream-Snapshot-Offset")), Next: Offset(h.Get("Stream-Next-Offset")),
		UpToDate: isTrue(h, "Stream-Up-To-Date"), Closed: isTrue(h, "Stream-Closed"),
		body: resp.Body, parts: multipart.NewReader(closing(resp.Body), params["boundary"]),
	}
	if t != "multipart/mixed" || params["boundary"] == "" || b.Snapshot == "" || b.Next == "" {
		b.Close()
		return nil, fmt.Errorf("%w: not a bootstrap: %s, snapshot offset %q, next offset %q", ErrAnswer, t, b.Snapshot, b.Next)
	}
	return b, nil
}

// NextPart returns the next part, and io.EOF after the last one: only then everything
// up to the offset Next has arrived. Errors: [ErrUnreachable], [ErrAnswer].
func (b *Bootstrap) NextPart() (*Part, error) {
	p, err := b.parts.NextRawPart()
	switch {
	case err == io.EOF:
		return nil, io.EOF
	case err != nil:
		return nil, brokenPart(err)
	}
	return &Part{partReader{p}, p.Header.Get("Content-Type")}, nil
}

// Close ends the transfer, if it has not ended.
func (b *Bootstrap) Close() error { return b.body.Close() }

// closing gives the body to its parser so that only the closing boundary is the end: the
// parser takes also some other ends of input for it, such as one within a header. The
// boundary itself may lack its line end.
func closing(body io.Reader) io.Reader {
	return io.MultiReader(body, strings.NewReader("\r\n"), cut{})
}

// cut fails as an answer does that ends too early.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// partReader is a part's body. Its end is the next boundary, not that of the answer.
type partReader struct{ p *multipart.Part }

func (r partReader) Read(b []byte) (int, error) {
	n, err := r.p.Read(b)
	if err != nil && err != io.EOF {
		err = brokenPart(err)
	}
	return n, err
}

func brokenPart(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: read bootstrap: %w", ErrUnreachable, err)
}
