package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// request is what one attempt sends.
type request struct {
	method string
	url    string
	header http.Header
	body   []byte
	// stream is sent instead of body if it is not nil.
	stream io.Reader
	// patient: nothing bounds the time to the answer.
	patient bool
}

// errSilent: nothing came for Options.Silence.
var errSilent = errors.New("nothing came for too long")

// send makes one attempt and returns its answer if that is one of success; the caller
// closes its body. Errors: [ErrUnreachable], [*Error].
func (o *Options) send(ctx context.Context, r request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := r.stream
	if body == nil && len(r.body) > 0 {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url, body)
	if err != nil {
		cancel(nil)
		return nil, fmt.Errorf("make request: %w", err)
	}
	for _, h := range []http.Header{o.Header, r.header} {
		for name, values := range h {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	watch := time.AfterFunc(o.Silence, func() { cancel(errSilent) })
	if r.patient {
		watch.Stop()
	}
	resp, err := o.HTTP.Do(req)
	watch.Stop()
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnreachable, reason(ctx, err))
		cancel(nil)
		return nil, err
	}
	resp.Body = &answer{body: resp.Body, ctx: ctx, cancel: cancel, watch: watch, silence: o.Silence}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, ReadError(resp)
	}
	return resp, nil
}

// reason is why a request broke off. That of the silence must not look as if the caller
// had given up.
func reason(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

// answer is the body of a response. Each read has the patience of Options.Silence.
type answer struct {
	body    io.ReadCloser
	ctx     context.Context
	cancel  context.CancelCauseFunc
	watch   *time.Timer
	silence time.Duration
}

func (a *answer) Read(p []byte) (int, error) {
	a.watch.Reset(a.silence)
	n, err := a.body.Read(p)
	a.watch.Stop()
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: the answer broke off: %w", ErrUnreachable, reason(a.ctx, err))
	}
	return n, err
}

func (a *answer) Close() error {
	a.watch.Stop()
	// First: otherwise closing would wait for the rest of an endless body.
	a.cancel(nil)
	return a.body.Close()
}

// drain reads the little that is left of an answer, so that its connection can be
// used again.
func drain(resp *http.Response) {
	io.Copy(io.Discard, io.LimitReader(resp.Body, maxProblem))
	resp.Body.Close()
}

func isTrue(h http.Header, name string) bool { return strings.EqualFold(h.Get(name), "true") }

// nextOffset is where an answer ends.
func nextOffset(h http.Header) (Offset, error) {
	o := Offset(h.Get("Stream-Next-Offset"))
	if o == "" {
		return "", fmt.Errorf("%w: no Stream-Next-Offset; is this the URL of a stream?", ErrAnswer)
	}
	return o, nil
}
