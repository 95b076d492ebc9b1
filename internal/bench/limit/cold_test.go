package limit_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"firn/internal/bench/limit"
	"firn/internal/blob"
	"firn/internal/blob/mem"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// put seals n bytes of a stream from a position on.
func put(t *testing.T, store blob.Store, key, id string, from uint64, n int) {
	t.Helper()
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	w := e.NewWriter(segment.Meta{
		Store: "store", Name: stream.Name{Bucket: "bench", ID: id}, Incarnation: stream.ID(1), Life: 1,
		Mode: stream.Bytes, ContentType: "text/plain", CreatedMs: 1, From: from,
	})
	content := make([]byte, n)
	random := rand.New(rand.NewPCG(from, 1))
	for i := range content {
		content[i] = byte(random.IntN(16))
	}
	if err := w.Append(content, 1); err != nil {
		t.Fatal(err)
	}
	sealed, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Put(t.Context(), key, bytes.NewReader(sealed.Bytes), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// All content of one stream is read once, though parts of it are there twice and other
// streams have objects too.
func TestObjectsAreReadOnce(t *testing.T) {
	store := mem.New(mem.Options{})
	put(t, store, "stream=a/0.bin.zst", "a", 0, 1<<16)
	put(t, store, "stream=a/0-again.bin.zst", "a", 0, 1<<15)
	put(t, store, "stream=a/1.bin.zst", "a", 1<<16, 3<<16)
	put(t, store, "stream=a/inside.bin.zst", "a", 2<<16, 1<<16)
	put(t, store, "stream=ab/0.bin.zst", "ab", 4<<16, 1<<16)
	for _, size := range []int64{1, 1 << 15, 1 << 30} {
		o, err := limit.FindObjects(t.Context(), store, "a", size)
		if err != nil {
			t.Fatal(err)
		}
		n, err := o.DecodeAll(t.Context(), 3)
		if err != nil || n != 4<<16 || o.Content != n || o.Length <= 0 || o.Length >= n {
			t.Errorf("ranges of %d: read %d bytes of %d, %d stored, %v", size, n, o.Content, o.Length, err)
		}
	}
}
