package main

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"golang.org/x/time/rate"

	"firn/internal/config"
)

func newLogger(w io.Writer, c config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level, ReplaceAttr: plain}
	var h slog.Handler = slog.NewTextHandler(w, o)
	if c.Format == "json" {
		h = slog.NewJSONHandler(w, o)
	}
	return slog.New(sparse{h, &counts{of: make(map[string]*count)}})
}

// plain has errors logged by what they say: those of Pebble have stack traces besides,
// pages long.
func plain(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok {
		return slog.String(a.Key, err.Error())
	}
	return a
}

// Warnings and errors with the same message: so many at once, and so many a second after that. A
// damaged object that thousands of clients ask for must not fill the disk with lines.
const (
	logBurst = 20
	logRate  = 1
)

// sparse leaves warnings and errors out that come too often, and counts them: the next one with the
// same message has the number in left_out.
type sparse struct {
	slog.Handler
	counts *counts
}

// counts are kept by message. Those of warnings and errors are constants of this program
// and hence few; what net/http says, with addresses in it, is logged at a lower level.
type counts struct {
	mu sync.Mutex
	of map[string]*count
}

type count struct {
	limit   *rate.Limiter
	leftOut int
}

// admit reports whether a record may be logged, and how many before it were not.
func (c *counts) admit(r slog.Record) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.of[r.Message]
	if n == nil {
		n = &count{limit: rate.NewLimiter(logRate, logBurst)}
		c.of[r.Message] = n
	}
	if !n.limit.AllowN(r.Time, 1) {
		n.leftOut++
		return 0, false
	}
	leftOut, n.leftOut = n.leftOut, 0
	return leftOut, true
}

func (h sparse) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	leftOut, ok := h.counts.admit(r)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("left_out", leftOut))
	}
	return h.Handler.Handle(ctx, r)
}

func (h sparse) WithAttrs(attrs []slog.Attr) slog.Handler {
	return sparse{h.Handler.WithAttrs(attrs), h.counts}
}

func (h sparse) WithGroup(name string) slog.Handler {
	return sparse{h.Handler.WithGroup(name), h.counts}
}
