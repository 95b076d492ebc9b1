package hot_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// Keys of one kind sort as the values that they are made of, in this order.
func TestKeysSortAsTheirValues(t *testing.T) {
	numbers := []uint64{0, 1, 255, 256, 1<<32 - 1, 1 << 32, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	var data, segment, fork, held, queue, expiry, unsealed [][]byte
	for _, a := range numbers {
		queue = append(queue, hot.KeyQueue(a, ""), hot.KeyQueue(a, "a"), hot.KeyQueue(a, "a/b"), hot.KeyQueue(a, "b"))
		for _, b := range numbers {
			data = append(data, hot.KeyData(stream.ID(a), b))
			segment = append(segment, hot.KeySegment(stream.ID(a), b))
			expiry = append(expiry, hot.KeyExpiry(a, stream.ID(b)))
			unsealed = append(unsealed, hot.KeyUnsealed(a, stream.ID(b)))
			for _, c := range numbers {
				fork = append(fork, hot.KeyFork(stream.ID(a), b, stream.ID(c)))
				held = append(held, hot.KeyHeld(a, stream.ID(b), c))
			}
		}
	}
	name := [][]byte{
		hot.KeyName(stream.Name{Bucket: "aaaa", ID: "z"}),
		hot.KeyName(stream.Name{Bucket: "aaaa-", ID: "a"}),
		hot.KeyName(stream.Name{Bucket: "aaaaa", ID: "a"}),
		hot.KeyName(stream.Name{Bucket: "aaaaa", ID: "a\x01"}),
		hot.KeyName(stream.Name{Bucket: "aaaaa", ID: "b"}),
		hot.KeyName(stream.Name{Bucket: "aaaaa", ID: "é"}),
	}
	for kind, keys := range map[string][][]byte{
		"data": data, "segment": segment, "fork": fork, "held": held, "queue": queue, "expiry": expiry, "unsealed": unsealed, "name": name,
	} {
		if !slices.IsSortedFunc(keys, bytes.Compare) {
			t.Errorf("%s keys are out of order", kind)
		}
		for i := 1; i < len(keys); i++ {
			if bytes.Equal(keys[i-1], keys[i]) {
				t.Errorf("%s keys: %x stands for two", kind, keys[i])
			}
		}
	}
}

// The keys of one incarnation lie between its prefix and what comes after it.
func TestKeyAfter(t *testing.T) {
	for _, id := range []stream.ID{0, 1, 0xff, 0xffff_ffff, 0x00ff_ffff_ffff_ffff, math.MaxUint64 - 1, math.MaxUint64} {
		prefix := hot.KeyOf('d', id)
		after := hot.KeyAfter(prefix)
		if last := hot.KeyData(id, math.MaxUint64); bytes.Compare(last, after) >= 0 {
			t.Errorf("%x is not before %x", last, after)
		}
		if id != math.MaxUint64 && bytes.Compare(hot.KeyData(id+1, 0), after) < 0 {
			t.Errorf("%x takes in another incarnation", after)
		}
	}
	if hot.KeyAfter([]byte{0xff, 0xff}) != nil {
		t.Error("nothing comes after the last keys")
	}
}
