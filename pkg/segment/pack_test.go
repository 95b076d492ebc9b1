package segment_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

func TestWritePack(t *testing.T) {
	lines := ndjson(40, 16)
	for _, tc := range []struct {
		name     string
		mode     stream.Mode
		contents [][]byte
		frames   []int
		first    [][2]uint32 // first frame and skip of each
	}{
		{"small ones share a frame", stream.Bytes, [][]byte{noise(10), noise(20), noise(1)}, []int{31}, [][2]uint32{{0, 0}, {0, 10}, {0, 30}}},
		{"one begins where a frame does", stream.Bytes, [][]byte{noise(64), noise(64), noise(5)}, []int{64, 64, 5}, [][2]uint32{{0, 0}, {1, 0}, {2, 0}}},
		{"one lies over an edge", stream.Bytes, [][]byte{noise(60), noise(8)}, []int{64, 4}, [][2]uint32{{0, 0}, {0, 60}}},
		{"a large one between small ones", stream.Bytes, [][]byte{noise(1), noise(200), noise(1)}, []int{64, 64, 64, 10}, [][2]uint32{{0, 0}, {0, 1}, {3, 9}}},
		{"messages stay whole", stream.JSON, [][]byte{lines[:48], lines[:32], lines[:16]}, []int{64, 32}, [][2]uint32{{0, 0}, {0, 48}, {1, 16}}},
		{"a message larger than a frame", stream.JSON, [][]byte{lines[:16], ndjson(1, 100), lines[:16]}, []int{16, 100, 16}, [][2]uint32{{0, 0}, {1, 0}, {2, 0}}},
		{"the next message has no room", stream.JSON, [][]byte{ndjson(3, 21), ndjson(1, 2)}, []int{63, 2}, [][2]uint32{{0, 0}, {1, 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var metas []segment.Meta
			for i := range tc.contents {
				m := packMeta(i)
				m.Mode = tc.mode
				metas = append(metas, m)
			}
			e, dec := newEncoder(t, segment.Options{FrameBytes: 64}), newDecoder(t)
			for _, chunk := range []int{1, 7, 1000} {
				s := sealPack(t, e, metas, tc.contents, chunk)
				d, err := dec.Verify(bytes.NewReader(s.Bytes), int64(len(s.Bytes)))
				if err != nil {
					t.Fatal(err)
				}
				if got := contentSizes(d.Frames); !slices.Equal(got, tc.frames) {
					t.Errorf("frames have %v bytes, want %v", got, tc.frames)
				}
				if !reflect.DeepEqual(d.Refs("a/pack"), s.Refs) {
					t.Errorf("descriptor gives %+v, the writer %+v", d.Refs("a/pack"), s.Refs)
				}
				if _, err := segment.ParseTail(s.Bytes[int64(len(s.Bytes))-s.TailBytes():], int64(len(s.Bytes))); err != nil {
					t.Errorf("suffix of %d bytes: %v", s.TailBytes(), err)
				}
				for i, c := range tc.contents {
					r := s.Refs[i]
					if en := d.Entries[i]; [2]uint32{en.FirstFrame, en.Skip} != tc.first[i] || en.Stream != metas[i].Name.ID {
						t.Errorf("entry %d of stream %q begins at %d+%d, want %v", i, en.Stream, en.FirstFrame, en.Skip, tc.first[i])
					}
					if !reflect.DeepEqual(d.Ref(i, "a/pack"), r) {
						t.Errorf("entry %d: %+v, want %+v", i, d.Ref(i, "a/pack"), r)
					}
					for from := r.From; from < r.To; from += 5 {
						if got := read(t, dec, s.Bytes, &r, from, r.To); !bytes.Equal(got, c[from-r.From:]) {
							t.Errorf("entry %d from %d: %d bytes, want %d", i, from, len(got), len(c)-int(from-r.From))
						}
					}
				}
			}
		})
	}
}

// The cuts of a pack are those of the same bytes of one stream.
func TestPackCutsFollowTheBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	e := newEncoder(t, segment.Options{FrameBytes: 300, Level: 1})
	for range 50 {
		var metas []segment.Meta
		var contents [][]byte
		for i := range 1 + r.IntN(20) {
			metas = append(metas, packMeta(i))
			contents = append(contents, ndjson(1+r.IntN(6), 2+r.IntN(150)))
		}
		p := sealPack(t, e, metas, contents, 1+r.IntN(200))
		one := seal(t, e, jsonMeta, bytes.Join(contents, nil), 1+r.IntN(200))
		d, err := segment.ParseTail(p.Bytes, int64(len(p.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := contentSizes(d.Frames), contentSizes(one.Refs[0].Frames); !slices.Equal(got, want) {
			t.Fatalf("frames of the pack have %v bytes, of one stream %v", got, want)
		}
	}
}

func TestBeginRefuses(t *testing.T) {
	other := func(change func(*segment.Meta)) segment.Meta {
		m := packMeta(1)
		change(&m)
		return m
	}
	for _, tc := range []struct {
		name   string
		before string
		m      segment.Meta
		want   error
	}{
		{"store", "1\n", other(func(m *segment.Meta) { m.Store = "other" }), segment.ErrMixed},
		{"bucket", "1\n", other(func(m *segment.Meta) { m.Name.Bucket = "other" }), segment.ErrMixed},
		{"mode", "1\n", other(func(m *segment.Meta) { m.Mode = stream.Bytes }), segment.ErrMixed},
		{"empty", "", packMeta(1), segment.ErrEmpty},
		{"inside a message", "1\n2", packMeta(1), segment.ErrUnfinishedMessage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newEncoder(t, segment.Options{}).NewWriter(packMeta(0))
			if err := w.Append([]byte(tc.before), 1); err != nil {
				t.Fatal(err)
			}
			if err := w.Begin(tc.m); !errors.Is(err, tc.want) {
				t.Fatalf("%v, want %v", err, tc.want)
			}
			// The writer goes on as if it had not been asked.
			if err := w.Append([]byte("3\n"), 1); err != nil {
				t.Fatal(err)
			}
			s, err := w.Finish()
			if err != nil || len(s.Refs) != 1 || s.Refs[0].To != uint64(len(tc.before))+2 {
				t.Fatalf("%+v, %v", s, err)
			}
			if err := w.Begin(packMeta(2)); !errors.Is(err, segment.ErrFinished) {
				t.Errorf("begin after finish: %v", err)
			}
		})
	}
	t.Run("last range is empty", func(t *testing.T) {
		w := newEncoder(t, segment.Options{}).NewWriter(packMeta(0))
		if err := errors.Join(w.Append([]byte("1\n"), 1), w.Begin(packMeta(1))); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Finish(); !errors.Is(err, segment.ErrEmpty) {
			t.Errorf("%v, want %v", err, segment.ErrEmpty)
		}
	})
}

func TestPackIsFull(t *testing.T) {
	for _, tc := range []struct {
		name string
		id   int // bytes of each stream id
		want int
	}{
		{"by entries", 5, segment.MaxEntries},
		// 8 MiB over 56 bytes of numbers, 1,024 of the id and 16 of the type.
		{"by descriptor", stream.MaxPath, (8 << 20) / (56 + stream.MaxPath + len("application/json"))},
	} {
		t.Run(tc.name, func(t *testing.T) {
			meta := func(i int) segment.Meta {
				m := packMeta(i)
				m.Name.ID = fmt.Sprintf("%05d", i) + strings.Repeat("x", tc.id-5)
				return m
			}
			w := newEncoder(t, segment.Options{}).NewWriter(meta(0))
			n := 1
			for {
				if err := w.Append([]byte("1\n"), 1); err != nil {
					t.Fatal(err)
				}
				err := w.Begin(meta(n))
				if errors.Is(err, segment.ErrFull) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != tc.want {
				t.Errorf("%d entries, want %d", n, tc.want)
			}
			s, err := w.Finish()
			if err != nil {
				t.Fatal(err)
			}
			d, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes)))
			if err != nil || len(d.Entries) != n || s.TailBytes() > segment.MaxTail {
				t.Errorf("%v; tail of %d bytes", err, s.TailBytes())
			}
		})
	}
}
