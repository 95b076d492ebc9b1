package cold_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// damages are what can happen to the body of a GET of ten frames.
var damages = map[string]fault.Fault{
	"short, nothing came":       {Kind: fault.Short, At: 0},
	"short within a frame":      {Kind: fault.Short, At: 100},
	"short by a byte":           {Kind: fault.Short, At: 10*frameBytes - 1},
	"flipped in the first byte": {Kind: fault.Flip, At: 0},
	"flipped in the middle":     {Kind: fault.Flip, At: 5 * frameBytes},
	"cut, with a wrong length":  {Kind: fault.Cut, At: 100, Err: blob.ErrCorrupt},
}

func TestDamageOnTheWayIsFetchedAgain(t *testing.T) {
	for what, f := range damages {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			ref, content := r.put(t, 0, 10*frameBytes)
			f.Op = fault.Get
			r.faults.Script(f)
			got, err := r.all(ref)
			equal(t, got, err, content)
		})
	}
}

// A body or an object that is too short is damage, too, and not merely an outage.
func TestDamageThatStaysIsAnErrorAndNeverCached(t *testing.T) {
	for what, f := range damages {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			ref, content := r.put(t, 0, 10*frameBytes)
			f.Op, f.Times = fault.Get, fault.Always
			f.At = 0 // in every GET, also of one frame
			r.faults.Script(f)
			for range 2 {
				got, err := r.all(ref)
				if !errors.Is(err, stream.ErrColdUnavailable) || !errors.Is(err, segment.ErrCorrupt) || errors.Is(err, cold.ErrMissing) {
					t.Fatalf("%s: read gave %v, want ErrColdUnavailable and ErrCorrupt", what, err)
				}
				if !bytes.HasPrefix(content, got) {
					t.Fatalf("%s: read gave %d bytes that are not the segment's", what, len(got))
				}
				synctest.Wait() // for the frames that the reader did not wait for
			}
			r.faults.Clear()
			got, err := r.all(ref)
			equal(t, got, err, content)
		})
	}
}

func TestUnansweredGetIsTriedAgainByTheNextReader(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"no answer": {Kind: fault.Before},
		"lost":      {Kind: fault.After},
		"cut":       {Kind: fault.Cut, At: 100},
		"denied":    {Kind: fault.Before, Err: blob.ErrDenied},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			ref, content := r.put(t, 0, 10*frameBytes)
			f.Op = fault.Get
			r.faults.Script(f)
			if _, err := r.all(ref); !errors.Is(err, stream.ErrColdUnavailable) || errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("read gave %v, want ErrColdUnavailable alone", err)
			}
			got, err := r.all(ref)
			equal(t, got, err, content)
		})
	}
}

func TestMissingObjectIsToldApart(t *testing.T) {
	r := newRig(t, cold.Options{})
	ref, _ := r.put(t, 0, frameBytes)
	if gone, err := r.Delete(context.Background(), []string{ref.Object}); err != nil || len(gone) != 1 {
		t.Fatalf("deleted %q, %v", gone, err)
	}
	if _, err := r.all(ref); !errors.Is(err, cold.ErrMissing) || !errors.Is(err, stream.ErrColdUnavailable) {
		t.Errorf("read gave %v, want ErrMissing and ErrColdUnavailable", err)
	}
}

func TestSwappedAndCutObjectsAreNoticed(t *testing.T) { synctest.Test(t, swappedAndCut) }

func swappedAndCut(t *testing.T) {
	r := newRig(t, cold.Options{})
	a, contentA := r.put(t, 0, 10*frameBytes)
	b, _ := r.put(t, 10*frameBytes, 10*frameBytes)
	objectB, _, err := blob.ReadAll(context.Background(), r.blobs, b.Object, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	var was []byte
	for what, change := range map[string]func([]byte) []byte{
		"other content of the same size": func([]byte) []byte { return objectB },
		"nothing":                        func([]byte) []byte { return nil },
		"half of it":                     func(d []byte) []byte { return d[:len(d)/2] },
		"one byte shorter in front":      func(d []byte) []byte { return d[1:] },
	} {
		r.overwrite(t, a.Object, func(d []byte) []byte { was = d; return change(d) })
		if _, err := r.all(a); !errors.Is(err, segment.ErrCorrupt) || !errors.Is(err, stream.ErrColdUnavailable) {
			t.Errorf("%s: %v, want ErrCorrupt and ErrColdUnavailable", what, err)
		}
		synctest.Wait() // for the frames that the reader did not wait for
		r.overwrite(t, a.Object, func([]byte) []byte { return was })
	}
	got, err := r.all(a)
	equal(t, got, err, contentA)
}

// Damage must not multiply calls: a run is fetched once more as a whole.
func TestDamageIsFetchedAgainByOneGetARun(t *testing.T) {
	for what, tt := range map[string]struct {
		change func([]byte) []byte
		gets   int
	}{
		"cut in half":        {func(d []byte) []byte { return d[:len(d)/4] }, 2},
		"one frame":          {func(d []byte) []byte { d[frameBytes] ^= 1; return d }, 2},
		"two that are apart": {func(d []byte) []byte { d[0] ^= 1; d[5*frameBytes] ^= 1; return d }, 3},
		"every byte of it":   {func(d []byte) []byte { clear(d); return d }, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, cold.Options{})
			ref, _ := r.put(t, 0, 10*frameBytes)
			r.overwrite(t, ref.Object, tt.change)
			n := r.gets(func() {
				if _, err := r.all(ref); !errors.Is(err, segment.ErrCorrupt) {
					t.Errorf("%s: read gave %v, want ErrCorrupt", what, err)
				}
				synctest.Wait()
			})
			if n != tt.gets {
				t.Errorf("%s: %d GETs, want %d", what, n, tt.gets)
			}
		})
	}
}

// One bad frame does not keep a reader from the others.
func TestDamagedFrameLeavesTheOthers(t *testing.T) { synctest.Test(t, damagedFrame) }

func damagedFrame(t *testing.T) {
	r := newRig(t, cold.Options{})
	ref, content := r.put(t, 0, 10*frameBytes)
	span, err := ref.Span(5*frameBytes, 6*frameBytes)
	if err != nil {
		t.Fatal(err)
	}
	r.overwrite(t, ref.Object, func(d []byte) []byte { d[span.Offset+1] ^= 0x80; return d })
	got, err := r.all(ref)
	synctest.Wait()
	if !errors.Is(err, segment.ErrCorrupt) || !bytes.Equal(got, content[:5*frameBytes]) {
		t.Errorf("read %d bytes, %v; want the five frames before the damage and ErrCorrupt", len(got), err)
	}
	n := r.gets(func() {
		got, err := r.Read(context.Background(), nil, ref, 6*frameBytes, 10*frameBytes)
		equal(t, got, err, content[6*frameBytes:])
	})
	if n != 0 {
		t.Errorf("the frames after the damage took %d GETs, want none", n)
	}
}
