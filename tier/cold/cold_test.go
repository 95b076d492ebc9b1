package cold_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// frameBytes makes segments of many frames from few bytes.
const frameBytes = 64

// rig is a cold tier over objects in memory that fail by script.
type rig struct {
	*cold.Store
	blobs  *mem.Store
	faults *fault.Store
}

// newRig opens a cold tier without read-ahead, unless o says otherwise. At the end
// of the test every fault must have fired.
func newRig(t *testing.T, o cold.Options) *rig {
	t.Helper()
	m := mem.New(mem.Options{})
	r := &rig{blobs: m, faults: fault.New(m)}
	r.Store = open(t, r.faults, o)
	t.Cleanup(func() {
		for _, f := range r.faults.Unfired() {
			t.Errorf("fault did not fire: %+v", f)
		}
	})
	return r
}

func open(t *testing.T, blobs blob.Store, o cold.Options) *cold.Store {
	t.Helper()
	if o.StoreID == "" {
		o.StoreID = "0123456789abcdef"
	}
	if o.ReadAhead == 0 {
		o.ReadAhead = -1
	}
	o.Logger = slog.New(slog.NewTextHandler(writer{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := cold.Open(blobs, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// writer sends log lines to the test.
type writer struct{ t *testing.T }

func (w writer) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

var name = stream.Name{Bucket: "test", ID: "s"}

// seal makes a segment of n bytes that do not compress, from a position on.
func seal(t *testing.T, from uint64, n int) (*segment.Sealed, []byte) {
	t.Helper()
	e, err := segment.NewEncoder(segment.Options{FrameBytes: frameBytes})
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{byte(from), byte(n), byte(n >> 8)})
	_, _ = rnd.Read(content) // never fails
	w := e.NewWriter(segment.Meta{
		Store: "0123456789abcdef", Name: name, Incarnation: 7, Life: 1, Mode: stream.Bytes,
		ContentType: "application/octet-stream", CreatedMs: 1, From: from,
	})
	if err := w.Append(content, 1); err != nil {
		t.Fatal(err)
	}
	sealed, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return sealed, content
}

// put seals n bytes into an object and returns how to find them.
func (r *rig) put(t *testing.T, from uint64, n int) (segment.Ref, []byte) {
	t.Helper()
	sealed, content := seal(t, from, n)
	key := r.SegmentKey(name, 7, stream.Bytes, from, from+uint64(n))
	size, err := r.PutSegment(context.Background(), key, sealed)
	if err != nil {
		t.Fatal(err)
	}
	if size != uint64(len(sealed.Bytes)) {
		t.Fatalf("put tells %d bytes, the object has %d", size, len(sealed.Bytes))
	}
	sealed.Name(key)
	return sealed.Refs[0], content
}

// overwrite replaces an object behind the store's back.
func (r *rig) overwrite(t *testing.T, key string, change func([]byte) []byte) {
	t.Helper()
	data, _, err := blob.ReadAll(context.Background(), r.blobs, key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.blobs.Put(context.Background(), key, bytes.NewReader(change(data)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// gets counts the GETs that a function makes.
func (r *rig) gets(f func()) int {
	before := r.faults.Calls(fault.Get)
	f()
	return r.faults.Calls(fault.Get) - before
}

// all reads a whole segment.
func (r *rig) all(ref segment.Ref) ([]byte, error) {
	return r.Read(context.Background(), nil, ref, ref.From, ref.To)
}

// equal fails the test unless a read gave these bytes.
func equal(t *testing.T, got []byte, err error, want []byte) {
	t.Helper()
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("read %d bytes, %v; want %d other ones or none", len(got), err, len(want))
	}
}

// unconditional is a store that knows no conditional puts.
type unconditional struct{ blob.Store }

func (u unconditional) Put(ctx context.Context, key string, body blob.Body, o blob.PutOptions) (blob.Info, error) {
	if o != (blob.PutOptions{}) {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, blob.ErrNotSupported)
	}
	return u.Store.Put(ctx, key, body, o)
}

// readAll reads a snapshot to its end.
func readAll(t *testing.T, r io.ReadCloser) ([]byte, error) {
	t.Helper()
	defer r.Close()
	return io.ReadAll(r)
}
