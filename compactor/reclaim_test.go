package compactor_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"testing"

	"firn/compactor"
	"firn/internal/blob/mem"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// Evicting alone leaves the bytes on the disk: Pebble drops them when it happens to
// rewrite the files that they are in.
func TestEvictedBytesLeaveTheDisk(t *testing.T) {
	dir := t.TempDir()
	h, err := hot.Open(dir, hot.Options{MemTableBytes: 1 << 20, Fatal: func(m string) { panic(m) }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cold.Open(mem.New(mem.Options{}), cold.Options{StoreID: h.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e, err := segment.NewEncoder(segment.Options{Level: 1})
	if err != nil {
		t.Fatal(err)
	}
	const total = 34 << 20
	comp, err := compactor.New(compactor.Options{
		Hot: h, Cold: c, Encoder: e, Policy: compactor.Policy{Budget: 1 << 20, HardBytes: 1 << 40, Target: 1 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Four streams, whose values lie between one another's.
	var ids []stream.ID
	for _, id := range []string{"a", "b", "c", "d"} {
		r, err := h.Create(bg, hot.Create{Name: named(id), ContentType: stream.DefaultContentType, Mode: stream.Bytes})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Record.ID)
	}
	rnd := rand.NewChaCha8([32]byte{})
	payload := make([]byte, 256<<10)
	for i := range total / len(payload) {
		_, _ = rnd.Read(payload) // never fails
		if _, err := h.Append(bg, &hot.Append{ID: ids[i%4], ContentType: stream.DefaultContentType, Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	full := size(t, dir)
	settle(t, comp)
	if n := h.HotBytes(); n > 1<<20 {
		t.Fatalf("%d hot bytes are left", n)
	}
	if err := h.Close(); err != nil { // ends what Pebble removes behind our back
		t.Fatal(err)
	}
	if left := size(t, dir); full < total || left > total/2 {
		t.Errorf("the directory had %d MiB and has %d MiB, with 1 MiB to keep", full>>20, left>>20)
	}
}

// While streams grow and are evicted, the directory follows the budget.
func TestDirectoryFollowsTheBudget(t *testing.T) {
	const budget, memtable, streams = 2 << 20, 256 << 10, 64
	dir := t.TempDir()
	h, err := hot.Open(dir, hot.Options{MemTableBytes: memtable, Fatal: func(m string) { panic(m) }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	c, err := cold.Open(mem.New(mem.Options{}), cold.Options{StoreID: h.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	comp, err := compactor.New(compactor.Options{
		Hot: h, Cold: c, Policy: compactor.Policy{Budget: budget, HardBytes: 1 << 40, Target: 64 << 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []stream.ID
	for i := range streams {
		r, err := h.Create(bg, hot.Create{Name: named(fmt.Sprint(i)), ContentType: stream.DefaultContentType, Mode: stream.Bytes})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Record.ID)
	}
	rnd := rand.NewChaCha8([32]byte{1})
	payload := make([]byte, 4<<10)
	const rounds = 60 // 15 MiB
	for round := range rounds {
		for _, id := range ids {
			_, _ = rnd.Read(payload)
			if _, err := h.Append(bg, &hot.Append{ID: id, ContentType: stream.DefaultContentType, Payload: payload}); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, comp)
		// What docs/operations.md promises: twice the budget and a memtable for the values;
		// the rest for what has not been flushed, its logs, and files on their way out.
		if n, limit := size(t, dir), int64(2*budget+12*memtable); n > limit && round > 0 {
			t.Fatalf("round %d: the directory has %d MiB, %d MiB are promised", round, n>>20, limit>>20)
		}
	}
}

// settle does what there is to do, and then gives space back.
func settle(t *testing.T, c *compactor.Compactor) {
	t.Helper()
	for _, step := range []func(context.Context) (bool, error){c.Pass, c.Reclaim} {
		for more := true; more; {
			var err error
			if more, err = step(bg); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// size adds up the files of a directory.
func size(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		i, err := d.Info()
		if os.IsNotExist(err) {
			return nil // removed meanwhile
		}
		if err == nil {
			n += i.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
