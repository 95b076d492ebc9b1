package hot_test

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/tier/hot"
)

// A directory that has lost its marker is refused, and nothing in it is touched: Pebble
// alone would begin anew and remove the tables.
func TestOpenRefusesADirectoryThatHasLostFiles(t *testing.T) {
	for _, lost := range []string{"marker.manifest."} {
		mem := vfs.NewMem()
		s := openWith(t, hot.Options{FS: mem, MemTableBytes: 256 << 10})
		rec := create(t, s, "a")
		c := &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte(strings.Repeat("x", 200<<10))}
		for range 4 {
			if _, err := s.Append(context.Background(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := openWith(t, hot.Options{FS: mem}).Close(); err != nil { // replays, and flushes
			t.Fatal(err)
		}
		dir := "hot"
		list := func() []string {
			names, err := mem.List(dir)
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(names)
			return names
		}
		for _, n := range list() {
			if strings.Contains(n, lost) {
				if err := mem.Remove(path.Join(dir, n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		before := list()
		if !slices.ContainsFunc(before, func(n string) bool { return strings.HasSuffix(n, ".sst") }) {
			t.Fatalf("no table: %q", before)
		}
		if _, err := hot.Open(dir, hot.Options{FS: mem}); !errors.Is(err, hot.ErrDamaged) {
			t.Errorf("without %s: %v", lost, err)
		}
		if after := list(); !slices.Equal(after, before) {
			t.Errorf("without %s: the files were %q and are %q", lost, before, after)
		}
	}
}
