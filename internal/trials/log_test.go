package trials_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// logTo returns a logger whose output is shown when the test fails. A panic in the log
// is a failure.
func logTo(t testing.TB) *slog.Logger {
	b := &logBuffer{}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		text := b.text.String()
		if strings.Contains(text, "panicked") {
			t.Error("there is a panic in the server's log")
		}
		if t.Failed() && text != "" {
			t.Logf("log of the server:\n%s", text[max(0, len(text)-10_000):])
		}
	})
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}
