package cold_test

import (
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"testing"
	"time"

	"firn/internal/blob/fault"
	"firn/internal/blob/limit"
	"firn/internal/blob/mem"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
)

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

func TestSnapshotRoundTrip(t *testing.T) {
	r := newRig(t, cold.Options{})
	ctx := context.Background()
	for _, n := range []int{0, 1, 100_000} {
		want := bytes.Repeat([]byte{'x'}, n)
		key := r.SnapshotKey(name, 7, 5)
		if err := r.PutSnapshot(ctx, key, bytes.NewReader(want), int64(n)); err != nil {
			t.Fatal(err)
		}
		body, err := r.OpenSnapshot(ctx, key, int64(n), crc(want))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := readAll(t, body); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", n, len(got), err)
		}
	}
}

func TestSnapshotDamageIsNoticedBeforeTheEnd(t *testing.T) {
	ctx := context.Background()
	want := bytes.Repeat([]byte("0123456789"), 1000)
	for what, f := range map[string]fault.Fault{
		"short":      {Kind: fault.Short, At: 9999},
		"empty":      {Kind: fault.Short, At: 0},
		"first flip": {Kind: fault.Flip, At: 0},
		"last flip":  {Kind: fault.Flip, At: 9999},
		"cut":        {Kind: fault.Cut, At: 9999},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			if err := r.PutSnapshot(ctx, "k", bytes.NewReader(want), int64(len(want))); err != nil {
				t.Fatal(err)
			}
			f.Op = fault.Get
			r.faults.Script(f)
			var got []byte
			body, err := r.OpenSnapshot(ctx, "k", int64(len(want)), crc(want))
			if err == nil {
				got, err = readAll(t, body)
			}
			if !errors.Is(err, stream.ErrColdUnavailable) || errors.Is(err, segment.ErrCorrupt) != (f.Kind != fault.Cut) {
				t.Errorf("read to the end gave %v", err)
			}
			if len(got) >= len(want) {
				t.Errorf("all %d bytes were given out before the damage was told", len(got))
			}
		})
	}
}

// A server has announced the size: with the last byte the client would take the blob
// for whole.
func TestSnapshotKeepsItsEndBackUntilItIsVerified(t *testing.T) {
	ctx := context.Background()
	// Longer than the piece that is verified before anything is given out.
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16+1)
	for _, n := range []int{4096, len(want) - 1, len(want), len(want) + 1} {
		r := newRig(t, cold.Options{})
		if err := r.PutSnapshot(ctx, "k", bytes.NewReader(want), int64(len(want))); err != nil {
			t.Fatal(err)
		}
		body, err := r.OpenSnapshot(ctx, "k", int64(len(want)), crc(want)+1)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		read := 0
		for err == nil {
			var m int
			m, err = body.Read(make([]byte, n))
			read += m
		}
		if _, again := body.Read(make([]byte, n)); !errors.Is(err, segment.ErrCorrupt) || !errors.Is(again, segment.ErrCorrupt) || read >= len(want) {
			t.Errorf("read by %d: %d bytes, then %v and %v; want fewer than all and ErrCorrupt", n, read, err, again)
		}
	}
}

// Clients who take snapshots slowly must not use up the calls to the store.
func TestSlowSnapshotReadersHoldNoCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	blobs := limit.New(mem.New(mem.Options{}), limit.Options{Calls: 1})
	s, err := cold.Open(blobs, cold.Options{StoreID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 200_000) // some pieces
	if err := s.PutSnapshot(ctx, "k", bytes.NewReader(want), int64(len(want))); err != nil {
		t.Fatal(err)
	}
	var readers []io.ReadCloser
	for range 3 {
		body, err := s.OpenSnapshot(ctx, "k", int64(len(want)), crc(want))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(body, make([]byte, 1<<20+1)); err != nil {
			t.Fatal(err)
		}
		readers = append(readers, body)
	}
	for _, body := range readers {
		if rest, err := readAll(t, body); err != nil || !bytes.Equal(rest, want[1<<20+1:]) {
			t.Errorf("got %d bytes more, %v", len(rest), err)
		}
	}
}

func TestSnapshotOfAnotherSizeIsRefusedAtOnce(t *testing.T) {
	r := newRig(t, cold.Options{})
	ctx := context.Background()
	if err := r.PutSnapshot(ctx, "k", bytes.NewReader([]byte("12345")), 5); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{0, 4, 6} {
		if _, err := r.OpenSnapshot(ctx, "k", size, 0); !errors.Is(err, stream.ErrColdUnavailable) || !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("5 bytes for %d: %v, want ErrColdUnavailable and ErrCorrupt", size, err)
		}
	}
	if _, err := r.OpenSnapshot(ctx, "k", 5, crc([]byte("12346"))); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("swapped blob gave %v, want ErrCorrupt", err)
	}
	if _, err := r.OpenSnapshot(ctx, "other", 5, 0); !errors.Is(err, cold.ErrMissing) || !errors.Is(err, stream.ErrColdUnavailable) {
		t.Errorf("missing blob gave %v, want ErrMissing and ErrColdUnavailable", err)
	}
}

func TestManyWhoOpenASmallSnapshotCostOneGet(t *testing.T) {
	r := newRig(t, cold.Options{})
	ctx := context.Background()
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // the largest small one
	if err := r.PutSnapshot(ctx, "k", bytes.NewReader(want), int64(len(want))); err != nil {
		t.Fatal(err)
	}
	// A failure is told to who waits, and not kept.
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Flip, At: 5})
	if _, err := r.OpenSnapshot(ctx, "k", int64(len(want)), crc(want)); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("a flipped byte: got %v", err)
	}
	n := r.gets(func() {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				body, err := r.OpenSnapshot(ctx, "k", int64(len(want)), crc(want))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, want) {
					t.Errorf("got %d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
	})
	if n != 1 {
		t.Errorf("20 readers cost %d GETs, want 1", n)
	}
	if _, err := r.OpenSnapshot(ctx, "k", int64(len(want)), crc(want)+1); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("another checksum is met by what is cached: %v", err)
	}
}
