package hot_test

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/tier/hot"
)

// What is evicted costs those nothing who read, seal and evict after it, also while
// Pebble has not dropped it yet. Each walked backwards over all that was evicted before:
// a stream of 40 MB that was sealed in pieces of 100 kB became ten times slower on the way.
func TestEvictedBytesCostNothing(t *testing.T) {
	ctx := context.Background()
	const size, count, mark = 64 << 10, 600, 590
	s := openWith(t, hot.Options{FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	defer s.Close()
	rec := create(t, s, "a")
	payload := make([]byte, size)
	for range count {
		if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	sealUpTo(t, s, rec.ID, mark*size)
	v := s.View() // and so Pebble keeps it
	defer v.Close()
	blocks := func(what string, most int64, f func() error) {
		t.Helper()
		before := s.BlocksRead()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := s.BlocksRead() - before; n > most {
			t.Errorf("%s looks at %d blocks, want at most %d", what, n, most)
		}
	}
	for what, at := range map[string]uint64{"a read at the mark": mark * size, "a read inside of the first value": mark*size + 100} {
		blocks(what, 150, func() error {
			b, err := v.Data(nil, rec.ID, at, at+10)
			if len(b) != 10 {
				t.Errorf("%s: %d bytes", what, len(b))
			}
			return err
		})
	}
	blocks("the next eviction", 250, func() error {
		sealUpTo(t, s, rec.ID, (mark+2)*size)
		return nil
	})
}
