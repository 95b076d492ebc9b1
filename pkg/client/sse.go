package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// mode is how the reader waits.
func (r *reader) mode() Live {
	if r.live == Auto && stream.IsText(r.contentType) && stream.ModeOf(r.contentType) != stream.JSON {
		return LongPoll
	}
	if r.live == LongPoll {
		return LongPoll
	}
	return SSE
}

// events reads one connection's events (B§5.8). That it ends is normal.
func (r *reader) events(ctx context.Context) error {
	q := url.Values{"live": {"sse"}, "offset": {string(r.at)}}
	if r.cursor != "" {
		q.Set("cursor", r.cursor)
	}
	resp, err := r.s.o.send(ctx, request{
		method: http.MethodGet, url: r.s.at("", q), header: http.Header{"Accept": {"text/event-stream"}},
	})
	if err == nil {
		defer resp.Body.Close()
		if t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); t != "text/event-stream" {
			err = fmt.Errorf("%w: events of type %q", errNoEvents, resp.Header.Get("Content-Type"))
		}
	}
	told := false
	if err == nil {
		told, err = r.listen(resp)
	}
	if r.live == Auto && !told && unfit(err) {
		r.live = LongPoll
		return nil
	}
	return err
}

// errNoEvents: the answer to a request for events is none of events.
var errNoEvents = fmt.Errorf("%w to a request for events", ErrAnswer)

// unfit reports whether events do not get through to here, by what the first
// connection brought: a refusal, something else, or nothing at all.
func unfit(err error) bool {
	if errors.Is(err, errNoEvents) || errors.Is(err, errSilent) {
		return true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Status {
		case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
			return true
		}
	}
	return false
}

// control is the event that says where the data before it ends.
type control struct {
	StreamNextOffset Offset
	StreamCursor     string
	UpToDate         bool
	StreamClosed     bool
}

// listen takes data when the control event after it has come: until then it is not
// known where the next connection would go on. told: there was one.
func (r *reader) listen(resp *http.Response) (told bool, err error) {
	base64ed := resp.Header.Get("Stream-SSE-Data-Encoding") == "base64"
	limit := r.s.o.PageBytes
	in := newEventReader(resp.Body, limit/3*4+4)
	var data []byte
	for !r.left && !r.ended {
		ev, err := in.next()
		switch {
		case err == io.EOF && told:
			return told, nil
		case err == io.EOF:
			return told, fmt.Errorf("%w: events ended before the first", ErrUnreachable)
		case err != nil:
			return told, err
		}
		switch ev.name {
		case "data":
			b, err := r.decode(ev.data, base64ed)
			if err != nil {
				return told, err
			}
			if len(data)+len(b) > limit {
				return told, fmt.Errorf("%w: more than %d bytes at a time", ErrAnswer, limit)
			}
			data = append(data, b...)
		case "control":
			var c control
			if err := json.Unmarshal(ev.data, &c); err != nil || c.StreamNextOffset == "" {
				return told, fmt.Errorf("%w: control event %q", ErrAnswer, ev.data)
			}
			told = true
			r.take(Page{
				Data: data, Next: c.StreamNextOffset, cursor: c.StreamCursor,
				UpToDate: c.UpToDate || c.StreamClosed, Closed: c.StreamClosed,
			})
			data = nil
		}
	}
	return told, nil
}

func (r *reader) decode(data []byte, base64ed bool) ([]byte, error) {
	if !base64ed {
		return stored(data, r.contentType)
	}
	// The decoder skips line ends, which may stand anywhere.
	b, err := base64.StdEncoding.AppendDecode(nil, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return b, nil
}
