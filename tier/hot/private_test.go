package hot_test

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"firn/tier/hot"
)

// The directory that is made is its owner's alone, as secret keys are kept in it. One
// that was there stays as it is, and it is said if others may read it.
func TestDirectoryIsPrivate(t *testing.T) {
	for _, tt := range []struct {
		before, after fs.FileMode // before is 0: not there
		warned        bool
	}{
		{0, 0o700, false},
		{0o700, 0o700, false},
		{0o750, 0o750, false},
		{0o755, 0o755, true},
		{0o701, 0o701, true},
	} {
		dir := filepath.Join(t.TempDir(), "new", "hot")
		if tt.before != 0 {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, tt.before); err != nil {
				t.Fatal(err)
			}
		}
		var log strings.Builder
		s, err := hot.Open(dir, hot.Options{MemTableBytes: 1 << 20, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		i, err := os.Stat(dir)
		if err != nil || i.Mode().Perm() != tt.after {
			t.Errorf("mode %o became %o, %v", tt.before, i.Mode().Perm(), err)
		}
		if strings.Contains(log.String(), "level=WARN") != tt.warned {
			t.Errorf("mode %o: %s", tt.before, &log)
		}
	}
}
