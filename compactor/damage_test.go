package compactor_test

import (
	"math/rand/v2"
	"testing"

	"firn/compactor"
)

// A stream that cannot be read does not keep others from being evicted and trimmed.
func TestDamageInOneStreamKeepsNoOther(t *testing.T) {
	r := newRig(t, setup{policy: compactor.Policy{Target: 1 << 20, Budget: 1}})
	noise := make([]byte, 40<<10)
	rand.NewChaCha8([32]byte{}).Read(noise)
	half := len(noise) / 2
	for _, id := range []string{"hurt", "whole"} {
		r.create(id, string(noise[:half]))
		r.must(r.SealStream(bg, r.record(id).ID))
	}
	r.append("hurt", string(noise[half:]))
	for range 2 { // the second start flushes what the first has replayed
		r.close()
		r.open()
	}
	flip := func(text []byte) {
		t.Helper()
		r.close()
		if n, err := r.disk.Damage("hot", text); n == 0 || err != nil {
			t.Fatalf("%d tables changed: %v", n, err)
		}
		text[0] ^= 1 // as it stands there now
		r.open()
	}
	text := noise[half : half+64]
	flip(text)
	for range 3 {
		_, err := r.Pass(bg)
		r.must(err)
	}
	r.marks("hurt", 0, uint64(half), uint64(len(noise)))
	r.marks("whole", uint64(half), uint64(half), uint64(half))
	if s := r.Status(); s.Err != nil || s.Stuck != 1 {
		t.Errorf("status is %+v", s)
	}
	flip(text) // back
	r.must(r.EvictStream(bg, r.record("hurt").ID))
	r.marks("hurt", uint64(half), uint64(half), uint64(len(noise)))
}
