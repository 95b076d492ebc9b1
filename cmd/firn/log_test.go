package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"firn/internal/config"
)

// pages is an error that has much to say when it is asked for everything.
type pages struct{}

func (pages) Error() string { return "a block is damaged" }

func (e pages) Format(s fmt.State, _ rune) {
	text := e.Error()
	if s.Flag('+') {
		text += strings.Repeat("\n-- stack trace:", 100)
	}
	fmt.Fprint(s, text)
}

// Errors are logged by what they say, without the stack traces that some bring along.
func TestErrorsAreLoggedInOneLine(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		newLogger(&out, config.Log{Format: format}).Error("request failed", "err", fmt.Errorf("read: %w", error(pages{})), "bare", pages{})
		if s := out.String(); strings.Contains(s, "stack trace") || strings.Count(s, "a block is damaged") != 2 {
			t.Errorf("%s: logged %.300s", format, s)
		}
	}
}

// A line that comes again and again is written now and then, with the number of those
// that were not; others do not wait for it.
func TestLogIsNotFloodedByOneMessage(t *testing.T) {
	var out bytes.Buffer
	h := newLogger(&out, config.Log{}).With("part", "api").Handler()
	record := func(level slog.Level, message string, at time.Time) {
		if err := h.Handle(t.Context(), slog.NewRecord(at, level, message, 0)); err != nil {
			t.Fatal(err)
		}
	}
	tell := func(message string, at time.Time) { record(slog.LevelError, message, at) }
	start := time.Unix(1e9, 0)
	for i := range 1000 {
		tell("request failed", start.Add(time.Duration(i)*time.Microsecond))
	}
	tell("disk is slow", start)
	if n := strings.Count(out.String(), "request failed"); n != logBurst {
		t.Errorf("%d of 1000 lines, want %d", n, logBurst)
	}
	if !strings.Contains(out.String(), "disk is slow") {
		t.Error("another line is left out too")
	}
	out.Reset()
	for range 100 { // whoever asks for these wants them all
		record(slog.LevelDebug, "http: connection reset", start)
	}
	if n := strings.Count(out.String(), "http:"); n != 100 {
		t.Errorf("%d of 100 lines for debugging", n)
	}
	out.Reset()
	tell("request failed", start.Add(2*time.Second))
	if s := out.String(); !strings.Contains(s, "part=api") || !strings.Contains(s, fmt.Sprintf("left_out=%d", 1000-logBurst)) {
		t.Errorf("after a while: %q", s)
	}
}
