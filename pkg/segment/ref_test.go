package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"firn/pkg/segment"
)

func someRef() segment.Ref {
	return segment.Ref{
		Object: "p/s/bucket=default/packs/1.ndjson.zst", Offset: 77, Length: 60, Skip: 5, From: 1000, To: 1250,
		Frames: []segment.Frame{
			{Length: 30, Content: 100, CRC: 0xdeadbeef, TimeMs: 1_700_000_000_000},
			{Length: 20, Content: 100, CRC: 1, TimeMs: 1_699_999_999_000}, // the clock was set back
			{Length: 10, Content: 60, CRC: 2, TimeMs: math.MaxUint64},
		},
	}
}

func TestRefRoundTrip(t *testing.T) {
	for name, change := range map[string]func(*segment.Ref){
		"as it is":         func(*segment.Ref) {},
		"all of it":        func(r *segment.Ref) { r.Skip = 0; r.To = r.From + 260 },
		"least of it":      func(r *segment.Ref) { r.Skip = 99; r.To = r.From + 102 },
		"last position":    func(r *segment.Ref) { r.From += math.MaxUint64 - r.To; r.To = math.MaxUint64 },
		"end of an object": func(r *segment.Ref) { r.Offset = math.MaxInt64 - r.Length },
		"longest key":      func(r *segment.Ref) { r.Object = strings.Repeat("k", segment.MaxObjectKey) },
		"one byte": func(r *segment.Ref) {
			*r = segment.Ref{Object: "o", Length: 1, To: 1, Frames: []segment.Frame{{Length: 1, Content: 1}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := someRef()
			change(&r)
			b, err := r.AppendBinary([]byte("prefix"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := segment.ParseRef(b[len("prefix"):])
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, r) {
				t.Fatalf("parsed %+v, want %+v", got, r)
			}
		})
	}
}

func TestRefRefuses(t *testing.T) {
	for name, change := range map[string]func(*segment.Ref){
		"no key":            func(r *segment.Ref) { r.Object = "" },
		"long key":          func(r *segment.Ref) { r.Object = strings.Repeat("k", segment.MaxObjectKey+1) },
		"no frames":         func(r *segment.Ref) { r.Frames = nil },
		"empty frame":       func(r *segment.Ref) { r.Frames[1].Content = 0 },
		"huge frame":        func(r *segment.Ref) { r.Frames[1].Content = segment.MaxFrameContent + 1 },
		"long frame":        func(r *segment.Ref) { r.Frames[1].Length = 300; r.Length += 280 },
		"length":            func(r *segment.Ref) { r.Length++ },
		"offset":            func(r *segment.Ref) { r.Offset = math.MaxInt64 - r.Length + 1 },
		"empty range":       func(r *segment.Ref) { r.To = r.From },
		"backward range":    func(r *segment.Ref) { r.To = r.From - 1 },
		"skip":              func(r *segment.Ref) { r.Skip = 100 },
		"past the frames":   func(r *segment.Ref) { r.To = r.From + 256 },
		"far past":          func(r *segment.Ref) { r.From, r.To = 0, math.MaxUint64 },
		"needless frame":    func(r *segment.Ref) { r.To = r.From + 195 },
		"needless, skipped": func(r *segment.Ref) { r.Skip = 99; r.To = r.From + 101 },
	} {
		r := someRef()
		change(&r)
		if _, err := r.AppendBinary(nil); err == nil {
			t.Errorf("%s: encoded %+v", name, r)
		}
	}
}

func TestParseRefDamaged(t *testing.T) {
	r := someRef()
	b, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) {
		if _, err := segment.ParseRef(b[:n]); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("first %d bytes: %v, want ErrCorrupt", n, err)
		}
	}
	if _, err := segment.ParseRef(append(slices.Clone(b), 0)); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("one byte more: %v, want ErrCorrupt", err)
	}
	b[0] = 2
	if _, err := segment.ParseRef(b); !errors.Is(err, segment.ErrVersion) {
		t.Fatalf("version 2: %v, want ErrVersion", err)
	}
}

// Equal Refs have equal encodings: no number has two spellings.
func TestParseRefRefusesLongNumbers(t *testing.T) {
	r := segment.Ref{Object: "o", Length: 1, To: 1, Frames: []segment.Frame{{Length: 1, Content: 1}}}
	b, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	long := slices.Concat(b[:1], []byte{0x81, 0x00}, b[2:]) // the key's length, 1
	if _, err := segment.ParseRef(long); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("parse: %v, want ErrCorrupt", err)
	}
}

// A count is believed only as far as the input could hold it.
func TestParseRefAllocates(t *testing.T) {
	b := []byte{1, 1, 'o', 0, 0, 0, 1}
	b = binary.AppendUvarint(b, 1<<60)
	b = append(b, bytes.Repeat([]byte{1}, 100)...)
	if n := testing.AllocsPerRun(10, func() {
		if _, err := segment.ParseRef(b); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("parse: %v, want ErrCorrupt", err)
		}
	}); n > 10 {
		t.Fatalf("%v allocations", n)
	}
}
