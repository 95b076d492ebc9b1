package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"firn/pkg/stream"
)

// Read yields the pages from an offset to the tail, one request each. The last one is
// UpToDate, and may have no Data. A failed request is repeated as Options.Retry says;
// the first error that remains ends the iteration. Errors: as of [Stream.Get].
func (s *Stream) Read(ctx context.Context, from Offset) iter.Seq2[Page, error] {
	return s.pages(ctx, from, false)
}

// Follow is Read that waits at the tail for more, as Options.Live says, until the
// stream is closed: then the last page is Closed, and may have no Data. A page without
// Data comes also whenever the tail is reached. When a connection ends, for whatever
// reason, the next one goes on where it was. The iteration ends with an error when the
// server refuses, has failed for longer than Options.Retry allows, or ctx ends.
func (s *Stream) Follow(ctx context.Context, from Offset) iter.Seq2[Page, error] {
	return s.pages(ctx, from, true)
}

func (s *Stream) pages(ctx context.Context, from Offset, follow bool) iter.Seq2[Page, error] {
	return func(yield func(Page, error) bool) {
		r := s.reader(from, follow, func(p Page) bool { return yield(p, nil) })
		if err := r.run(ctx); err != nil && !r.left {
			yield(Page{}, err)
		}
	}
}

// reader is a position that moves through a stream. It moves only with pages that
// arrived whole.
type reader struct {
	s      *Stream
	yield  func(Page) bool
	follow bool
	live   Live
	back   backoff

	at          Offset
	cursor      string // of the last answer (B§10.1)
	contentType string
	// upToDate: the tail was reached, told: and that was said.
	upToDate, told bool
	// ended: there is no more to read; left: there is nobody to read it.
	ended, left bool
}

func (s *Stream) reader(from Offset, follow bool, yield func(Page) bool) *reader {
	return &reader{s: s, yield: yield, follow: follow, live: s.o.Live, back: backoff{retry: s.o.Retry}, at: from}
}

// run reads until the end. Catching up is by plain reads, which caches may answer and
// which tell what kind of stream it is; waiting begins at the tail.
func (r *reader) run(ctx context.Context) error {
	for !r.ended && !r.left {
		began, at, waits := time.Now(), r.at, r.waits()
		err := r.step(ctx)
		switch {
		case r.left || r.ended:
			return nil
		case err != nil:
			err = r.back.wait(ctx, err)
		case waits && r.at == at && time.Since(began) < r.s.o.Retry.First:
			// A server that does not wait is not to be asked all the time.
			err = sleep(ctx, r.s.o.Retry.First)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restart forgets all that is not so of another position.
func (r *reader) restart() { r.upToDate, r.told, r.cursor = false, false, "" }

// waits reports whether the next request is a live one: at the tail, and of a stream
// whose kind is known.
func (r *reader) waits() bool { return r.upToDate && r.contentType != "" }

// step makes one request, and takes what its answer brings.
func (r *reader) step(ctx context.Context) error {
	switch {
	case !r.waits():
		return r.get(ctx, url.Values{})
	case r.mode() == SSE:
		return r.events(ctx)
	}
	return r.get(ctx, url.Values{"live": {"long-poll"}})
}

func (r *reader) get(ctx context.Context, q url.Values) error {
	if r.cursor != "" && q.Has("live") {
		q.Set("cursor", r.cursor)
	}
	p, err := r.s.page(ctx, r.at, q)
	if err != nil {
		return err
	}
	if p.ContentType == "" && !q.Has("live") {
		p.ContentType = stream.DefaultContentType
	}
	r.take(p)
	return nil
}

// take moves behind a page and hands it on, unless it is no news.
func (r *reader) take(p Page) {
	r.back.succeeded()
	if p.ContentType == "" {
		p.ContentType = r.contentType
	}
	r.at, r.contentType = p.Next, p.ContentType
	if p.cursor != "" {
		r.cursor = p.cursor
	}
	r.upToDate = r.upToDate || p.UpToDate
	r.ended = p.Closed || p.UpToDate && !r.follow
	news := len(p.Data) > 0 || p.Closed || p.UpToDate && !r.told
	r.told = p.UpToDate
	if news && !r.yield(p) {
		r.left = true
	}
}

// trimmed reports whether err says that a snapshot stands for what was to be read. A
// server that has no snapshots says the same of a deleted stream, without a code.
func trimmed(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusGone && e.Code != "stream_deleted"
}
