package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"firn/pkg/segment"
)

// small is an object of a few hundred bytes with three frames.
func small(t testing.TB) (*segment.Sealed, []byte) {
	t.Helper()
	data := ndjson(6, 8)
	return seal(t, newEncoder(t, segment.Options{FrameBytes: 16}), jsonMeta, data, 8), data
}

func TestParseTailOfEverySuffix(t *testing.T) {
	s, _ := small(t)
	size := int64(len(s.Bytes))
	need := size - int64(s.Refs[0].Length)
	for n := range size + 1 {
		d, err := segment.ParseTail(s.Bytes[size-n:], size)
		var short *segment.ShortTailError
		switch {
		case n >= need:
			if err != nil || !reflect.DeepEqual(d.Ref(0, s.Refs[0].Object), s.Refs[0]) {
				t.Fatalf("suffix of %d: %v", n, err)
			}
		case !errors.As(err, &short):
			t.Fatalf("suffix of %d: %v, want ShortTailError", n, err)
		case n >= 17 && short.Need != need:
			t.Fatalf("suffix of %d needs %d, want %d", n, short.Need, need)
		case short.Need <= n || short.Need > size:
			t.Fatalf("suffix of %d needs %d of %d", n, short.Need, size)
		}
	}
	if _, err := segment.ParseTail(s.Bytes, size-1); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("suffix longer than the object: %v, want ErrCorrupt", err)
	}
}

func TestReadTailTakesTwoReads(t *testing.T) {
	s := seal(t, newEncoder(t, segment.Options{FrameBytes: 8}), bytesMeta, make([]byte, 8*2000), 1<<20)
	r := &countingReader{r: bytes.NewReader(s.Bytes)}
	d, err := segment.ReadTail(r, int64(len(s.Bytes)))
	if err != nil || len(d.Frames) != 2000 {
		t.Fatal(err)
	}
	want := []int{segment.TailHint, len(s.Bytes) - int(s.Refs[0].Length)}
	if !slices.Equal(r.sizes, want) {
		t.Fatalf("reads of %v bytes, want %v", r.sizes, want)
	}
}

type countingReader struct {
	r     io.ReaderAt
	sizes []int
}

func (c *countingReader) ReadAt(b []byte, off int64) (int, error) {
	c.sizes = append(c.sizes, len(b))
	return c.r.ReadAt(b, off)
}

type brokenReader struct{ err error }

func (r brokenReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

func TestReadErrorIsNotCorruption(t *testing.T) {
	broken := errors.New("connection lost")
	_, err := newDecoder(t).Verify(brokenReader{broken}, 1000)
	if !errors.Is(err, broken) || errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("verify: %v", err)
	}
}

func TestVerifyTruncated(t *testing.T) {
	s, _ := small(t)
	d := newDecoder(t)
	for n := range len(s.Bytes) {
		if _, err := d.Verify(bytes.NewReader(s.Bytes[:n]), int64(n)); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("first %d bytes: %v, want ErrCorrupt", n, err)
		}
		// The same loss, seen by a reader who believes the old size.
		if _, err := d.Verify(bytes.NewReader(s.Bytes[:n]), int64(len(s.Bytes))); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("first %d bytes of the whole: %v, want ErrCorrupt", n, err)
		}
		if n == 0 {
			continue
		}
		if _, err := d.Verify(bytes.NewReader(s.Bytes[n:]), int64(len(s.Bytes)-n)); !errors.Is(err, segment.ErrCorrupt) {
			t.Fatalf("without the first %d bytes: %v, want ErrCorrupt", n, err)
		}
	}
	grown := append(slices.Clone(s.Bytes), 0)
	if _, err := d.Verify(bytes.NewReader(grown), int64(len(grown))); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("one byte more: %v, want ErrCorrupt", err)
	}
	if _, err := d.Verify(bytes.NewReader(nil), -1); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("negative size: %v, want ErrCorrupt", err)
	}
}

// Every bit of an object is covered by a checksum, or compared with another.
func TestVerifyBitFlips(t *testing.T) {
	s, data := small(t)
	d := newDecoder(t)
	for i := range s.Bytes {
		for bit := range 8 {
			object := slices.Clone(s.Bytes)
			object[i] ^= 1 << bit
			if _, err := d.Verify(bytes.NewReader(object), int64(len(object))); !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("bit %d of byte %d flipped: %v, want ErrCorrupt", bit, i, err)
			}
			// A reader who has a Ref does not see the tail: right bytes or an error.
			at := 0
			var got []byte
			var err error
			for _, f := range s.Refs[0].Frames {
				if got, err = d.DecodeFrame(got, object[at:at+int(f.Length)], f); err != nil {
					break
				}
				at += int(f.Length)
			}
			inFrames := uint64(i) < s.Refs[0].Length
			if inFrames != errors.Is(err, segment.ErrCorrupt) || err == nil && !bytes.Equal(got, data) {
				t.Fatalf("bit %d of byte %d flipped: read %q, %v", bit, i, got, err)
			}
		}
	}
}

func TestPack(t *testing.T) {
	object, want, contents := pack(t)
	dec := newDecoder(t)
	d, err := dec.Verify(bytes.NewReader(object), int64(len(object)))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(d, want) {
		t.Fatalf("parsed %+v, want %+v", d, want)
	}
	if d.Entries[1].Skip == 0 || d.Entries[1].FirstFrame == 0 {
		t.Fatalf("the pack shares no frame: %+v", d.Entries)
	}
	for i, c := range contents {
		r := d.Ref(i, "packs/1")
		enc, err := r.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err = segment.ParseRef(enc); err != nil {
			t.Fatal(err)
		}
		for from := range len(c) {
			for to := from + 1; to <= len(c); to++ {
				if got := read(t, dec, object, &r, r.From+uint64(from), r.From+uint64(to)); !bytes.Equal(got, c[from:to]) {
					t.Fatalf("stream %d [%d,%d) is %q, want %q", i, from, to, got, c[from:to])
				}
			}
		}
	}
}

// Each descriptor has valid checksums but lies.
func TestParseTailRefusesLies(t *testing.T) {
	for name, lie := range map[string]func(*segment.Descriptor){
		"no entries":       func(d *segment.Descriptor) { d.Entries = nil },
		"no frames":        func(d *segment.Descriptor) { d.Frames = nil },
		"no store":         func(d *segment.Descriptor) { d.Store = "" },
		"bucket":           func(d *segment.Descriptor) { d.Bucket = "../x" },
		"mode":             func(d *segment.Descriptor) { d.Mode = 3 },
		"no stream":        func(d *segment.Descriptor) { d.Entries[0].Stream = "" },
		"content type":     func(d *segment.Descriptor) { d.Entries[0].ContentType = "\x1b[2J" },
		"empty range":      func(d *segment.Descriptor) { d.Entries[0].To = d.Entries[0].From },
		"backward range":   func(d *segment.Descriptor) { d.Entries[0].From, d.Entries[0].To = 10, 5 },
		"gap":              func(d *segment.Descriptor) { d.Entries[1].Skip++ },
		"overlap":          func(d *segment.Descriptor) { d.Entries[1].Skip-- },
		"first frame":      func(d *segment.Descriptor) { d.Entries[1].FirstFrame++ },
		"past the content": func(d *segment.Descriptor) { d.Entries[2].To++ },
		"far past it":      func(d *segment.Descriptor) { d.Entries[2].From = 0; d.Entries[2].To = 1<<64 - 1 },
		"short of it":      func(d *segment.Descriptor) { d.Entries[2].To-- },
		"entry missing":    func(d *segment.Descriptor) { d.Entries = d.Entries[:2] },
		"entry too many":   func(d *segment.Descriptor) { d.Entries = append(d.Entries, d.Entries[2]) },
		"empty frame":      func(d *segment.Descriptor) { d.Frames[0].Content = 0 },
		"frame of nothing": func(d *segment.Descriptor) { d.Frames[0].Length = 0 },
		"frame too large":  func(d *segment.Descriptor) { d.Frames[0].Content = segment.MaxFrameContent + 1 },
		"frame length":     func(d *segment.Descriptor) { d.Frames[0].Length-- },
		"frame missing":    func(d *segment.Descriptor) { d.Frames = d.Frames[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			object, d, _ := pack(t)
			length := d.Ref(0, "").Offset
			for _, f := range d.Frames {
				length += uint64(f.Length)
			}
			lie(d)
			object = segment.AppendTail(object[:length:length], d)
			if _, err := segment.ParseTail(object, int64(len(object))); !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("parse: %v, want ErrCorrupt", err)
			}
		})
	}
}

func TestSeekTableMustAgree(t *testing.T) {
	s, _ := small(t)
	d, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	desc := segment.AppendDescriptor(nil, d)
	for name, change := range map[string]func([]segment.Frame) []segment.Frame{
		"as it is": func(f []segment.Frame) []segment.Frame { return f },
		"length":   func(f []segment.Frame) []segment.Frame { f[1].Length++; return f },
		"content":  func(f []segment.Frame) []segment.Frame { f[1].Content++; return f },
		"fewer":    func(f []segment.Frame) []segment.Frame { return f[:2] },
		"more":     func(f []segment.Frame) []segment.Frame { return append(f, f[0]) },
	} {
		object := append(slices.Clone(s.Bytes[:s.Refs[0].Length]), desc...)
		object = segment.AppendSeekTable(object, change(slices.Clone(d.Frames)), len(desc))
		_, err := segment.ParseTail(object, int64(len(object)))
		if ok := name == "as it is"; ok != (err == nil) || !ok && !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A tail that claims to be huge is refused before anybody reads it.
func TestClaimedTailIsBounded(t *testing.T) {
	frames := []segment.Frame{{Length: 1, Content: 1}}
	fixed := int64(len(segment.AppendSeekTable(nil, frames, 0)))
	for _, tc := range []struct {
		descriptor int64
		corrupt    bool
	}{{segment.MaxTail - fixed, false}, {segment.MaxTail - fixed + 1, true}, {1<<32 - 1, true}} {
		suffix := segment.AppendSeekTable(nil, frames, int(tc.descriptor))
		_, err := segment.ParseTail(suffix, 1<<40)
		var short *segment.ShortTailError
		if errors.Is(err, segment.ErrCorrupt) != tc.corrupt || errors.As(err, &short) == tc.corrupt {
			t.Errorf("descriptor of %d bytes: %v", tc.descriptor, err)
		}
	}
}

// retail replaces the descriptor of s with one whose body was edited; sizes and
// checksum are right again.
func retail(t testing.TB, s *segment.Sealed, edit func(body []byte) []byte) []byte {
	t.Helper()
	d, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	desc := segment.AppendDescriptor(nil, d)
	body := edit(slices.Clone(desc[8 : len(desc)-4]))
	frame := withChecksum(body)
	object := append(slices.Clone(s.Bytes[:s.Refs[0].Length]), frame...)
	return segment.AppendSeekTable(object, d.Frames, len(frame))
}

// field encodes what a later release might add.
func field(tag uint16, value string) []byte {
	b := binary.BigEndian.AppendUint16(nil, tag)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value)))
	return append(b, value...)
}

// withFields adds fields to the only entry and to the object.
func withFields(s *segment.Sealed, entry, object []byte) func([]byte) []byte {
	return func(body []byte) []byte {
		// The entry's section is just before the frames, the object's is the end.
		frames := len(body) - 4 - 20*len(s.Refs[0].Frames)
		out := binary.BigEndian.AppendUint32(slices.Clone(body[:frames-4]), uint32(len(entry)))
		out = append(out, entry...)
		out = append(out, body[frames:len(body)-4]...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(object)))
		return append(out, object...)
	}
}

func TestUnknownFieldsArePassedOver(t *testing.T) {
	s, _ := small(t)
	many := slices.Concat(field(7, "new"), field(9, ""), field(1, strings.Repeat("x", 300)))
	for _, tc := range []struct {
		name          string
		entry, object []byte
		ok            bool
	}{
		{"none", nil, nil, true},
		{"some", many, many, true},
		{"entry cut short", many[:len(many)-1], nil, false},
		{"object cut short", nil, many[:len(many)-1], false},
		{"half a tag", nil, []byte{1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := retail(t, s, withFields(s, tc.entry, tc.object))
			d, err := segment.ParseTail(object, int64(len(object)))
			if !tc.ok {
				if !errors.Is(err, segment.ErrCorrupt) {
					t.Fatalf("parse: %v, want ErrCorrupt", err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(d.Ref(0, s.Refs[0].Object), s.Refs[0]) {
				t.Fatalf("parse: %v", err)
			}
		})
	}
}

func TestUnknownVersionIsNamed(t *testing.T) {
	s, _ := small(t)
	object := retail(t, s, func(body []byte) []byte {
		binary.BigEndian.PutUint16(body[8:], 2)
		return append(body[:12], "a layout that nobody knows yet, of any length whatsoever"...)
	})
	_, err := segment.ParseTail(object, int64(len(object)))
	if !errors.Is(err, segment.ErrVersion) || errors.Is(err, segment.ErrCorrupt) || !strings.Contains(err.Error(), "version 2") {
		t.Fatalf("parse: %v, want ErrVersion that names version 2", err)
	}
}

// Counts are believed only as far as the input could hold them.
func TestParseTailAllocates(t *testing.T) {
	s, _ := small(t)
	for name, at := range map[string]int{"entries": 12, "frames": 16} {
		object := retail(t, s, func(body []byte) []byte {
			binary.BigEndian.PutUint32(body[at:], 1<<27)
			return body
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := segment.ParseTail(object, int64(len(object)))
		runtime.ReadMemStats(&after)
		if !errors.Is(err, segment.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: allocated %d bytes", name, n)
		}
	}
}

func TestReservedByteIsZero(t *testing.T) {
	s, _ := small(t)
	object := retail(t, s, func(body []byte) []byte {
		body[11] = 1
		return body
	})
	if _, err := segment.ParseTail(object, int64(len(object))); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("parse: %v, want ErrCorrupt", err)
	}
}

// A message that is cut between frames or ranges has right checksums everywhere.
func TestVerifyFindsCutMessages(t *testing.T) {
	e, d := newEncoder(t, segment.Options{FrameBytes: 16}), newDecoder(t)
	s := seal(t, e, bytesMeta, ndjson(4, 10), 40) // frames cut inside of messages
	desc, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	desc.Mode = jsonMeta.Mode
	object := segment.AppendTail(slices.Clone(s.Bytes[:s.Refs[0].Length]), desc)
	if _, err := d.Verify(bytes.NewReader(object), int64(len(object))); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("frame cut inside a message: %v, want ErrCorrupt", err)
	}

	object, desc, _ = pack(t)
	last := desc.Ref(2, "")
	frames := last.Offset + last.Length
	desc.Entries[0].To++
	desc.Entries[1].From++
	desc.Entries[1].Skip++
	object = segment.AppendTail(object[:frames:frames], desc)
	if _, err := segment.ParseTail(object, int64(len(object))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(bytes.NewReader(object), int64(len(object))); !errors.Is(err, segment.ErrCorrupt) {
		t.Fatalf("range cut inside a message: %v, want ErrCorrupt", err)
	}
}
