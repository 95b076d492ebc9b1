package cold_test

import (
	"context"
	"testing"
	"testing/synctest"

	"firn/internal/blob/fault"
	"firn/pkg/segment"
	"firn/tier/cold"
)

func TestReadAheadFetchesWhatComesNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{ReadAhead: 4 * frameBytes})
		ref, content := r.put(t, 0, 10*frameBytes)
		read := func(from, to uint64) int {
			return r.gets(func() {
				got, err := r.Read(context.Background(), nil, ref, from, to)
				equal(t, got, err, content[from:to])
				synctest.Wait() // for what runs ahead
			})
		}
		if n := read(0, frameBytes); n != 1 {
			t.Errorf("the first read made %d GETs, want 1: nobody reads on yet", n)
		}
		if n := read(frameBytes, 2*frameBytes); n != 2 {
			t.Errorf("reading on made %d GETs, want its own and one ahead", n)
		}
		if n := read(2*frameBytes, 6*frameBytes); n != 1 {
			t.Errorf("reading what was fetched ahead made %d GETs, want only the next one ahead", n)
		}
		if n := read(6*frameBytes, 10*frameBytes); n != 0 {
			t.Errorf("reading to the end made %d GETs, want none", n)
		}
	})
}

func TestReadAheadDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{ReadAhead: frameBytes})
		const readers = 6 // more than run ahead at a time
		gate := make(chan struct{})
		for i := range readers {
			ref, content := r.put(t, uint64(i)*4*frameBytes, 4*frameBytes)
			read := func(from, to uint64) {
				got, err := r.Read(context.Background(), nil, ref, ref.From+from, ref.From+to)
				equal(t, got, err, content[from:to])
			}
			read(0, 2*frameBytes) // both frames are cached now
			r.faults.Script(fault.Fault{Op: fault.Get, Key: ref.Object, Kind: fault.Stall, Gate: gate, Times: fault.Always})
			read(0, frameBytes)
			read(frameBytes, 2*frameBytes) // reads on, and what is ahead hangs
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		// Only as many as may run ahead were stalled; the others were never asked for.
		if n := len(r.faults.Unfired()); n != readers-4 {
			t.Errorf("%d of %d readers had no read-ahead, want %d", n, readers, readers-4)
		}
		r.faults.Clear()
	})
}

// stepper reads a segment from its beginning on, and waits after each step for what
// runs ahead.
type stepper struct {
	r       *rig
	ref     segment.Ref
	content []byte
	at      uint64
}

// step reads n bytes at a place, and goes on from there less what it gives back, as a
// reader of whole messages does.
func (s *stepper) step(t *testing.T, n, back uint64) {
	t.Helper()
	to := min(s.ref.To, s.at+n)
	got, err := s.r.Read(context.Background(), nil, s.ref, s.at, to)
	equal(t, got, err, s.content[s.at-s.ref.From:to-s.ref.From])
	synctest.Wait()
	if s.at = to; to < s.ref.To {
		s.at -= back
	}
}

func TestReadAheadInAnySteps(t *testing.T) {
	const frames = 64
	for _, tt := range []struct {
		what       string
		step, back uint64
		gets       int
	}{
		// The first read, the second if it is of another frame, and half of what is
		// read ahead by each of the others.
		{"small ones", frameBytes / 4, 0, 1 + 63/4 + 1},
		{"whole frames", frameBytes, 0, 2 + 62/4 + 1},
		{"frames and a bit", frameBytes + 5, 0, 2 + 61/4 + 1},
		{"whole messages", 2*frameBytes + 5, 10, 2 + 59/4 + 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, cold.Options{ReadAhead: 8 * frameBytes})
			s := stepper{r: r}
			s.ref, s.content = r.put(t, 0, frames*frameBytes)
			n := r.gets(func() {
				for s.at < s.ref.To {
					s.step(t, tt.step, tt.back)
				}
			})
			if n > tt.gets {
				t.Errorf("%s: %d GETs for %d frames, want at most %d", tt.what, n, frames, tt.gets)
			}
		})
	}
}

func TestReadAheadOfManyReadersOfOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{ReadAhead: 8 * frameBytes})
		ref, content := r.put(t, 0, 64*frameBytes)
		var readers []*stepper
		for i := range uint64(4) {
			readers = append(readers, &stepper{r, ref, content, i * 16 * frameBytes})
		}
		for step := range 8 {
			n := r.gets(func() {
				for _, s := range readers {
					s.step(t, frameBytes, 0)
				}
			})
			if step > 1 && n > len(readers) || step == 2 && n != 0 {
				t.Errorf("step %d took %d GETs: nothing ran ahead", step, n)
			}
		}
	})
}

// Frames that nobody has asked for before must get into a cache that is full of
// frames which many have asked for.
func TestReadAheadIntoAFullCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{CacheBytes: 32 << 10, ReadAhead: 16 * frameBytes})
		hot, content := r.put(t, 64*frameBytes, 100*frameBytes)
		for range 5 {
			got, err := r.all(hot)
			equal(t, got, err, content)
		}
		s := stepper{r: r}
		s.ref, s.content = r.put(t, 0, 64*frameBytes)
		n := r.gets(func() {
			for s.at < s.ref.To {
				s.step(t, frameBytes, 0)
			}
		})
		if want := 2 + 62/8 + 1; n > want {
			t.Errorf("%d GETs for 64 frames, want at most %d", n, want)
		}
	})
}

// Readers that come back to one place are not readers that go on.
func TestNoReadAheadOfTheSameReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{ReadAhead: 8 * frameBytes})
		ref, content := r.put(t, 0, 10*frameBytes)
		n := r.gets(func() {
			for range 3 {
				for _, at := range []uint64{0, 5 * frameBytes} {
					s := stepper{r, ref, content, at}
					s.step(t, frameBytes/2, 0)
				}
			}
		})
		if n != 2 {
			t.Errorf("%d GETs, want 2", n)
		}
	})
}
