package segment_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"firn/pkg/segment"
)

// Golden files are what released versions wrote. They are never made anew: the
// flag adds those that are missing and touches no other.
var writeGolden = flag.Bool("write-golden", false, "write golden files that do not exist yet")

const goldenDir = "../../testdata/segment"

// golden returns the file's bytes; fresh makes them if the file is to be added.
func golden(t *testing.T, name string, fresh func() []byte) []byte {
	t.Helper()
	path := filepath.Join(goldenDir, name)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && *writeGolden {
		b = fresh()
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The compressor may change its output, so what is compared with new code is the
// content, the printed descriptor, and the descriptor's and seek table's bytes.
func TestGoldenObjects(t *testing.T) {
	jsonData := slices.Concat(events(700), ndjson(1, 1500), events(400))
	packObject, _, packContents := pack(t)
	for _, tc := range []struct {
		name   string
		data   []byte
		fields bool // the descriptor has fields that this version drops
		fresh  func() []byte
	}{
		{"v1-json.ndjson.zst", jsonData, false, func() []byte {
			return seal(t, newEncoder(t, segment.Options{FrameBytes: 512}), jsonMeta, jsonData, 300).Bytes
		}},
		{"v1-bytes.bin.zst", noise(1000), false, func() []byte {
			return seal(t, newEncoder(t, segment.Options{FrameBytes: 400}), bytesMeta, noise(1000), 300).Bytes
		}},
		{"v1-one-byte.bin.zst", []byte{'x'}, false, func() []byte {
			return seal(t, newEncoder(t, segment.Options{}), bytesMeta, []byte{'x'}, 1).Bytes
		}},
		{"v1-pack.ndjson.zst", bytes.Join(packContents, nil), false, func() []byte { return packObject }},
		{"v1-fields.ndjson.zst", ndjson(6, 8), true, func() []byte {
			s, _ := small(t)
			return retail(t, s, withFields(s, field(1, "entry"), slices.Concat(field(2, "object"), field(3, ""))))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := golden(t, tc.name, tc.fresh)
			dec := newDecoder(t)
			d, err := dec.Verify(bytes.NewReader(object), int64(len(object)))
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for i := range d.Entries {
				r := d.Ref(i, "")
				got = append(got, read(t, dec, object, &r, r.From, r.To)...)
			}
			if !bytes.Equal(got, tc.data) {
				t.Error("content differs")
			}
			dump := dumpOf(t, object)
			want := golden(t, tc.name+".txt", func() []byte { return []byte(dump) })
			if dump != string(want) {
				t.Errorf("dump is\n%s\nwant\n%s", dump, want)
			}
			var frames int
			for _, f := range d.Frames {
				frames += int(f.Length)
			}
			if again := segment.AppendTail(nil, d); bytes.Equal(again, object[frames:]) == tc.fields {
				t.Errorf("the tail is encoded as\n%x\nwas\n%x", again, object[frames:])
			}
		})
	}
}

func TestGoldenRef(t *testing.T) {
	want := someRef()
	encode := func() []byte {
		b, err := want.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(hex.EncodeToString(b) + "\n")
	}
	text := golden(t, "v1-ref.hex", encode)
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	got, err := segment.ParseRef(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("parsed %+v, want %+v", got, want)
	}
	if again := encode(); !bytes.Equal(again, text) {
		t.Errorf("encoded as %s, was %s", again, text)
	}
}

func dumpOf(t testing.TB, object []byte) string {
	t.Helper()
	var b strings.Builder
	if err := segment.Dump(&b, bytes.NewReader(object), int64(len(object))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDumpErrors(t *testing.T) {
	s, _ := small(t)
	r := bytes.NewReader(s.Bytes)
	if err := segment.Dump(&strings.Builder{}, r, int64(len(s.Bytes))-1); !errors.Is(err, segment.ErrCorrupt) {
		t.Errorf("dump of a cut object: %v, want ErrCorrupt", err)
	}
	full := errors.New("pipe is closed")
	if err := segment.Dump(failingWriter{full}, r, int64(len(s.Bytes))); !errors.Is(err, full) {
		t.Errorf("dump to a closed pipe: %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
