package s3

import (
	"context"
	"errors"
	"io"
	"time"
)

// errStalled is why a watchdog ends a request.
var errStalled = errors.New("request made no progress, or too little")

// watchdog ends a request that moves no byte for the idle time, or not enough of
// them in all. Only time in which the request is waited for counts: a body that
// its reader leaves alone for an hour has not stalled.
//
// It is used by one goroutine at a time, as a request's body is.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	left   time.Duration // budget of waiting for the whole request
	timer  *time.Timer
	since  time.Time // when the present wait began
}

// watch returns a watchdog for a request of n bytes. It is on.
func (s *Store) watch(ctx context.Context, n int64) *watchdog {
	w := &watchdog{idle: s.opts.IdleTimeout, left: s.budget(n)}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.since = time.Now()
	w.timer = time.AfterFunc(min(w.idle, w.left), func() { w.cancel(errStalled) })
	return w
}

// budget is the time for a request that moves n bytes.
func (s *Store) budget(n int64) time.Duration {
	return s.opts.IdleTimeout + time.Duration(float64(n)/float64(s.opts.MinRate)*float64(time.Second))
}

// rest stops the clock, wait starts it again, touch tells of progress.
func (w *watchdog) rest() {
	w.timer.Stop()
	w.left -= time.Since(w.since)
}

func (w *watchdog) wait() {
	w.since = time.Now()
	w.timer.Reset(max(min(w.idle, w.left), 0))
}

func (w *watchdog) touch() {
	w.rest()
	w.wait()
}

// why says that the watchdog ended the request, if it did; the SDK only knows that
// it was canceled.
func (w *watchdog) why(err error) error {
	if err != nil && context.Cause(w.ctx) == errStalled {
		return errStalled
	}
	return err
}

// stop ends the request.
func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(context.Canceled)
}

// sending is a request's body that tells the watchdog of each read. The SDK reads
// it more than once, for checksums; that is progress, too.
type sending struct {
	io.ReadSeeker
	w *watchdog
}

func (b *sending) Read(p []byte) (int, error) {
	b.w.touch()
	return b.ReadSeeker.Read(p)
}

// receiving is the body of an answer.
type receiving struct {
	io.ReadCloser
	w *watchdog
	s *Store
}

func (b *receiving) Read(p []byte) (int, error) {
	if b.w.ctx.Err() != nil { // bytes at hand do not count any more
		return 0, b.s.bodyError(b.w.ctx, b.w.ctx.Err())
	}
	b.w.wait()
	n, err := b.ReadCloser.Read(p)
	b.w.rest()
	if err != nil && err != io.EOF {
		err = b.s.bodyError(b.w.ctx, err)
	}
	return n, err
}

func (b *receiving) Close() error {
	b.w.stop()
	return b.ReadCloser.Close()
}
