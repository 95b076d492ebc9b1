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

// Snapshot stands for what a stream held up to an offset (X§2). Its bytes are read as
// they arrive, which can fail as any answer can.
type Snapshot struct {
	io.ReadCloser
	ContentType string
	// Offset is where reading the stream goes on.
	Offset Offset
}

// Snapshot opens the latest snapshot; the caller closes it. Errors:
// [stream.ErrSnapshotNotFound] and others as [*Error], [ErrUnreachable], [ErrAnswer].
func (s *Stream) Snapshot(ctx context.Context) (*Snapshot, error) {
	r := request{method: http.MethodGet, url: s.at("/snapshot", nil)}
	return repeat(ctx, s.o.Retry, func() (*Snapshot, error) {
		resp, err := s.o.send(ctx, r)
		// Between the two answers of a redirect the snapshot may have been replaced,
		// which happens no more often than snapshots are published.
		for err != nil && errors.Is(err, stream.ErrSnapshotNotFound) && redirected(err, r.url) {
			resp, err = s.o.send(ctx, r)
		}
		if err != nil {
			return nil, err
		}
		at := Offset(resp.Header.Get("Stream-Snapshot-Offset"))
		if at == "" {
			resp.Body.Close()
			return nil, fmt.Errorf("%w: no Stream-Snapshot-Offset", ErrAnswer)
		}
		return &Snapshot{resp.Body, resp.Header.Get("Content-Type"), at}, nil
	})
}

func redirected(err error, from string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.url != from
}

// PublishSnapshot replaces everything before an offset by what body holds: from then on
// reads from below it are a [*TrimmedError], and [Stream.Sync] and [Stream.Bootstrap]
// begin with the snapshot. An empty content type is application/octet-stream. It is not
// repeated, but may be: the same offset again replaces the snapshot. Errors:
// [stream.ErrSnapshotPastTail] and others as [*Error], [ErrUnreachable].
func (s *Stream) PublishSnapshot(ctx context.Context, at Offset, contentType string, body io.Reader) error {
	r := request{method: http.MethodPut, url: s.snapshotURL(at), stream: body, header: make(http.Header)}
	if contentType != "" {
		r.header.Set("Content-Type", contentType)
	}
	return s.o.change(ctx, r)
}

// DeleteSnapshot removes a snapshot that has been replaced (X§2.6). It is not repeated.
// Errors: [stream.ErrSnapshotLatest] and others as [*Error], [ErrUnreachable].
func (s *Stream) DeleteSnapshot(ctx context.Context, at Offset) error {
	return s.o.change(ctx, request{method: http.MethodDelete, url: s.snapshotURL(at)})
}

func (s *Stream) snapshotURL(at Offset) string {
	return s.at("/snapshot/"+url.PathEscape(string(at)), nil)
}
