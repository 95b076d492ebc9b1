package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
