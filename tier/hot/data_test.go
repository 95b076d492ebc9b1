package hot_test

import (
	"math"
	"testing"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// page is a stream of values as large as they get, and what one answer takes of it.
func page(tb testing.TB) (v *hot.View, id stream.ID, size uint64) {
	tb.Helper()
	s, err := hot.Open(tb.TempDir(), hot.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	r, err := s.Create(tb.Context(), hot.Create{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: "big"}, ContentType: "text/plain", Mode: stream.Bytes,
	})
	if err != nil {
		tb.Fatal(err)
	}
	payload := make([]byte, 4<<20)
	for i := range payload {
		payload[i] = byte(i * 7 / 3)
	}
	if _, err := s.Append(tb.Context(), &hot.Append{ID: r.Record.ID, ContentType: "text/plain", Payload: payload}); err != nil {
		tb.Fatal(err)
	}
	v = s.View()
	tb.Cleanup(v.Close)
	return v, r.Record.ID, uint64(len(payload))
}

// A page is copied once: what it is copied to does not grow on the way, which takes a
// dozen allocations more. Pools that are emptied now and then make single runs differ.
func TestDataAllocatesOnce(t *testing.T) {
	v, id, size := page(t)
	read := func(dst []byte) int {
		b, err := v.Data(dst, id, 0, size)
		if err != nil || uint64(len(b)) != size {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
		return cap(b)
	}
	own := make([]byte, 0, size)
	reused, fresh := math.Inf(1), math.Inf(1)
	for range 20 {
		reused = min(reused, testing.AllocsPerRun(1, func() { read(own) }))
		fresh = min(fresh, testing.AllocsPerRun(1, func() { read(nil) }))
	}
	if fresh > reused+6 {
		t.Errorf("%v allocations into a buffer, %v without one", reused, fresh)
	}
}

func BenchmarkData(b *testing.B) {
	v, id, size := page(b)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		var err error
		if buf, err = v.Data(buf[:0], id, 0, size); err != nil {
			b.Fatal(err)
		}
	}
}
