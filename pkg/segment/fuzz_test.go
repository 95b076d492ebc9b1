package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"firn/pkg/segment"
)

func goldenObjects(f *testing.F) [][]byte {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.zst"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no golden objects in %s: %v", goldenDir, err)
	}
	var objects [][]byte
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		objects = append(objects, b)
	}
	return objects
}

// withChecksum puts the right size and checksum around a descriptor's body, so
// that the fuzzer gets past them.
func withChecksum(body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x184D2A5F)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)+4))
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, segment.Checksum(body))
}

func FuzzParseTail(f *testing.F) {
	for _, o := range goldenObjects(f) {
		f.Add(o, int64(len(o)))
		f.Add(o[len(o)/2:], int64(len(o)))
	}
	f.Fuzz(func(t *testing.T, suffix []byte, size int64) {
		d, err := segment.ParseTail(suffix, size)
		var short *segment.ShortTailError
		switch {
		case errors.As(err, &short):
			if short.Need <= int64(len(suffix)) || short.Need > size || short.Need > segment.MaxTail {
				t.Fatalf("suffix of %d bytes of %d: %v", len(suffix), size, err)
			}
			return
		case err != nil:
			if !errors.Is(err, segment.ErrCorrupt) && !errors.Is(err, segment.ErrVersion) {
				t.Fatalf("not a sentinel: %v", err)
			}
			return
		}
		checkDescriptor(t, d)
	})
}

// FuzzDescriptor is FuzzParseTail behind the checksum.
func FuzzDescriptor(f *testing.F) {
	for _, o := range goldenObjects(f) {
		d, err := segment.ParseTail(o, int64(len(o)))
		if err != nil {
			f.Fatal(err)
		}
		desc := segment.AppendDescriptor(nil, d)
		f.Add(desc[8 : len(desc)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := segment.ParseDescriptor(withChecksum(body))
		if err != nil {
			if !errors.Is(err, segment.ErrCorrupt) && !errors.Is(err, segment.ErrVersion) {
				t.Fatalf("not a sentinel: %v", err)
			}
			return
		}
		checkDescriptor(t, d)
	})
}

// checkDescriptor holds what callers rely on once a descriptor was accepted.
func checkDescriptor(t *testing.T, d *segment.Descriptor) {
	t.Helper()
	again, err := segment.ParseDescriptor(segment.AppendDescriptor(nil, d))
	if err != nil || !reflect.DeepEqual(again, d) {
		t.Fatalf("encoded and parsed again: %+v, %v, want %+v", again, err, d)
	}
	for i := range min(len(d.Entries), 100) {
		r := d.Ref(i, "object")
		checkRef(t, &r)
	}
}

func FuzzParseRef(f *testing.F) {
	r := someRef()
	b, err := r.AppendBinary(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	for _, o := range goldenObjects(f) {
		d, err := segment.ParseTail(o, int64(len(o)))
		if err != nil {
			f.Fatal(err)
		}
		r := d.Ref(len(d.Entries)-1, "object")
		if b, err = r.AppendBinary(nil); err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := segment.ParseRef(b)
		if err != nil {
			if !errors.Is(err, segment.ErrCorrupt) && !errors.Is(err, segment.ErrVersion) {
				t.Fatalf("not a sentinel: %v", err)
			}
			return
		}
		if again := checkRef(t, &r); !bytes.Equal(again, b) {
			t.Fatalf("%x is encoded again as %x", b, again)
		}
	})
}

// checkRef encodes a Ref and parses it again, and takes spans of it.
func checkRef(t *testing.T, r *segment.Ref) []byte {
	t.Helper()
	b, err := r.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := segment.ParseRef(b)
	if err != nil || !reflect.DeepEqual(again, *r) {
		t.Fatalf("encoded and parsed again: %+v, %v, want %+v", again, err, *r)
	}
	for _, p := range [][2]uint64{{r.From, r.To}, {r.From, r.From + 1}, {r.To - 1, r.To}} {
		s, err := r.Span(p[0], p[1])
		if err != nil {
			t.Fatal(err)
		}
		at, offset := p[0], s.Offset
		for _, part := range s.Parts {
			if part.From != at || part.Offset != offset || part.Skip+part.To-part.From > uint64(part.Content) {
				t.Fatalf("span %v is %+v", p, s)
			}
			at = part.To
			offset += uint64(part.Length)
		}
		if at != p[1] || offset != s.Offset+s.Length || s.Offset < r.Offset || offset > r.Offset+r.Length {
			t.Fatalf("span %v is %+v of %+v", p, s, r)
		}
	}
	return b
}

func FuzzDecodeFrame(f *testing.F) {
	for _, o := range goldenObjects(f) {
		d, err := segment.ParseTail(o, int64(len(o)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(o[:d.Frames[0].Length], d.Frames[0].Content)
	}
	d := newDecoder(f)
	f.Fuzz(func(t *testing.T, compressed []byte, content uint32) {
		// The checksum is made right, so that what is behind it is reached.
		content %= 1 << 20
		fr := frameOf(compressed, int(content))
		got, err := d.DecodeFrame([]byte("x"), compressed, fr)
		if err != nil {
			if !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("not a sentinel: %v", err)
			}
			return
		}
		if len(got) != 1+int(content) || got[0] != 'x' {
			t.Fatalf("%d bytes for a content of %d", len(got), content)
		}
		fr.CRC++
		if _, err := d.DecodeFrame(nil, compressed, fr); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("wrong checksum: %v", err)
		}
	})
}
