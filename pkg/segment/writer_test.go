package segment_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"firn/pkg/segment"
)

func contentSizes(frames []segment.Frame) []int {
	var s []int
	for _, f := range frames {
		s = append(s, int(f.Content))
	}
	return s
}

func TestCuts(t *testing.T) {
	msg := func(sizes ...int) string {
		var b strings.Builder
		for _, n := range sizes {
			b.WriteString(strings.Repeat("1", n-1) + "\n")
		}
		return b.String()
	}
	for _, tc := range []struct {
		name string
		meta segment.Meta
		data string
		want []int
	}{
		{"bytes one", bytesMeta, "x", []int{1}},
		{"bytes one less than a frame", bytesMeta, strings.Repeat("x", 15), []int{15}},
		{"bytes a frame", bytesMeta, strings.Repeat("x", 16), []int{16}},
		{"bytes one more than a frame", bytesMeta, strings.Repeat("x", 17), []int{16, 1}},
		{"bytes two frames", bytesMeta, strings.Repeat("x", 32), []int{16, 16}},
		{"bytes ignore lf", bytesMeta, "a\nb\n" + strings.Repeat("\n", 20), []int{16, 8}},
		{"json smallest", jsonMeta, msg(2), []int{2}},
		{"json one less than a frame", jsonMeta, msg(15), []int{15}},
		{"json a frame", jsonMeta, msg(16), []int{16}},
		{"json one more than a frame", jsonMeta, msg(17), []int{17}},
		{"json fit exactly", jsonMeta, msg(4, 4, 4, 4, 4), []int{16, 4}},
		{"json next does not fit", jsonMeta, msg(10, 7), []int{10, 7}},
		{"json large after small", jsonMeta, msg(4, 4, 40, 4), []int{8, 40, 4}},
		{"json large after one small", jsonMeta, msg(4, 40), []int{4, 40}},
		{"json large ones", jsonMeta, msg(17, 40, 16, 100), []int{17, 40, 16, 100}},
		{"json large first", jsonMeta, msg(33, 3), []int{33, 3}},
		{"json nothing but lf", jsonMeta, strings.Repeat("\n", 33), []int{16, 16, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, d := newEncoder(t, segment.Options{FrameBytes: 16}), newDecoder(t)
			for chunk := 1; chunk <= len(tc.data); chunk++ {
				s := seal(t, e, tc.meta, []byte(tc.data), chunk)
				if got := contentSizes(s.Refs[0].Frames); !slices.Equal(got, tc.want) {
					t.Fatalf("chunks of %d: frames of %v, want %v", chunk, got, tc.want)
				}
				at := 0
				for i, f := range s.Refs[0].Frames {
					// seal appends a chunk each millisecond.
					if want := tc.meta.CreatedMs + uint64(at/chunk); f.TimeMs != want {
						t.Fatalf("chunks of %d: frame %d has time %d, want %d", chunk, i, f.TimeMs, want)
					}
					at += int(f.Content)
				}
				if got := read(t, d, s.Bytes, &s.Refs[0], s.Refs[0].From, s.Refs[0].To); string(got) != tc.data {
					t.Fatalf("chunks of %d: read %q, want %q", chunk, got, tc.data)
				}
				s.Release()
			}
		})
	}
}

func TestRoundTripAtFrameEdges(t *testing.T) {
	e, d := newEncoder(t, segment.Options{}), newDecoder(t)
	const frame = segment.DefaultFrameBytes
	for _, tc := range []struct {
		name   string
		meta   segment.Meta
		data   []byte
		frames int
	}{
		{"bytes 1", bytesMeta, noise(1), 1},
		{"bytes frame-1", bytesMeta, noise(frame - 1), 1},
		{"bytes frame", bytesMeta, noise(frame), 1},
		{"bytes frame+1", bytesMeta, noise(frame + 1), 2},
		{"bytes 2 frames+1", bytesMeta, noise(2*frame + 1), 3},
		{"json frame-1", jsonMeta, ndjson(1, frame-1), 1},
		{"json frame", jsonMeta, ndjson(2, frame/2), 1},
		{"json frame+1", jsonMeta, ndjson(1, frame+1), 1},
		{"json long message", jsonMeta, append(append(ndjson(3, 10), ndjson(1, 3*frame)...), ndjson(2, 10)...), 3},
		{"json events", jsonMeta, events(5*frame + frame/2), 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := seal(t, e, tc.meta, tc.data, 100_000)
			if len(s.Refs[0].Frames) != tc.frames {
				t.Fatalf("%d frames, want %d", len(s.Refs[0].Frames), tc.frames)
			}
			if s.Refs[0].From != tc.meta.From || s.Refs[0].To != tc.meta.From+uint64(len(tc.data)) {
				t.Fatalf("range [%d,%d) of %d bytes from %d", s.Refs[0].From, s.Refs[0].To, len(tc.data), tc.meta.From)
			}
			if got := read(t, d, s.Bytes, &s.Refs[0], s.Refs[0].From, s.Refs[0].To); !bytes.Equal(got, tc.data) {
				t.Fatal("read other bytes than were written")
			}
			desc, err := d.Verify(bytes.NewReader(s.Bytes), int64(len(s.Bytes)))
			if err != nil {
				t.Fatal(err)
			}
			if got := desc.Ref(0, s.Refs[0].Object); !reflect.DeepEqual(got, s.Refs[0]) {
				t.Fatalf("descriptor gives %+v, the writer %+v", got, s.Refs[0])
			}
			want := segment.Entry{
				Stream: tc.meta.Name.ID, ContentType: tc.meta.ContentType, Incarnation: tc.meta.Incarnation,
				Life: tc.meta.Life, CreatedMs: tc.meta.CreatedMs, From: s.Refs[0].From, To: s.Refs[0].To,
			}
			if desc.Entries[0] != want || desc.Name(0) != tc.meta.Name || desc.Store != tc.meta.Store || desc.Mode != tc.meta.Mode {
				t.Fatalf("descriptor is %+v", desc)
			}
		})
	}
}

func TestEveryRange(t *testing.T) {
	e, d := newEncoder(t, segment.Options{FrameBytes: 16}), newDecoder(t)
	data := append(append(ndjson(5, 5), ndjson(1, 20)...), ndjson(3, 4)...)
	s := seal(t, e, jsonMeta, data, 7)
	for from := range len(data) {
		for to := from + 1; to <= len(data); to++ {
			got := read(t, d, s.Bytes, &s.Refs[0], s.Refs[0].From+uint64(from), s.Refs[0].From+uint64(to))
			if !bytes.Equal(got, data[from:to]) {
				t.Fatalf("[%d,%d) is %q, want %q", from, to, got, data[from:to])
			}
		}
	}
}

func TestSpanOutside(t *testing.T) {
	s := seal(t, newEncoder(t, segment.Options{}), jsonMeta, ndjson(1, 10), 10)
	for _, p := range [][2]uint64{{4096, 4096}, {4097, 4096}, {4095, 4097}, {4096, 4107}, {0, math.MaxUint64}} {
		if _, err := s.Refs[0].Span(p[0], p[1]); !errors.Is(err, segment.ErrRange) {
			t.Errorf("span of %v: %v, want ErrRange", p, err)
		}
	}
}

func TestFinishRefuses(t *testing.T) {
	e := newEncoder(t, segment.Options{})
	for _, tc := range []struct {
		name string
		data []string
		want error
	}{
		{"nothing", nil, segment.ErrEmpty},
		{"no bytes", []string{"", ""}, segment.ErrEmpty},
		{"no lf", []string{"1\n", "2"}, segment.ErrUnfinishedMessage},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := e.NewWriter(jsonMeta)
			for _, s := range tc.data {
				if err := w.Append([]byte(s), 1); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.Finish(); !errors.Is(err, tc.want) {
				t.Fatalf("finish: %v, want %v", err, tc.want)
			}
			if _, err := w.Finish(); !errors.Is(err, segment.ErrFinished) {
				t.Fatalf("finish again: %v, want ErrFinished", err)
			}
		})
	}
}

func TestFinishRefusesMeta(t *testing.T) {
	e := newEncoder(t, segment.Options{})
	for name, tc := range map[string]struct {
		change func(*segment.Meta)
		ok     bool
	}{
		"as it is":          {func(*segment.Meta) {}, true},
		"no store":          {func(m *segment.Meta) { m.Store = "" }, false},
		"longest store":     {func(m *segment.Meta) { m.Store = strings.Repeat("s", segment.MaxStore) }, true},
		"long store":        {func(m *segment.Meta) { m.Store = strings.Repeat("s", segment.MaxStore+1) }, false},
		"bucket":            {func(m *segment.Meta) { m.Name.Bucket = "B" }, false},
		"no stream":         {func(m *segment.Meta) { m.Name.ID = "" }, false},
		"longest stream":    {func(m *segment.Meta) { m.Name.ID = strings.Repeat("s", 1024) }, true},
		"long stream":       {func(m *segment.Meta) { m.Name.ID = strings.Repeat("s", 1025) }, false},
		"no mode":           {func(m *segment.Meta) { m.Mode = 0 }, false},
		"no content type":   {func(m *segment.Meta) { m.ContentType = "" }, false},
		"long content type": {func(m *segment.Meta) { m.ContentType = "a/" + strings.Repeat("b", 1023) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := jsonMeta
			tc.change(&m)
			w := e.NewWriter(m)
			if err := w.Append([]byte("1\n"), 1); err != nil {
				t.Fatal(err)
			}
			s, err := w.Finish()
			if (err == nil) != tc.ok {
				t.Fatalf("finish: %v, want ok=%v", err, tc.ok)
			}
			if !tc.ok {
				return
			}
			if _, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestWriterLimits(t *testing.T) {
	t.Run("largest message", func(t *testing.T) {
		e, d := newEncoder(t, segment.Options{}), newDecoder(t)
		data := bytes.Repeat([]byte{'1'}, segment.MaxFrameContent)
		data[len(data)-1] = '\n'
		s := seal(t, e, jsonMeta, data, 1<<20)
		if _, err := d.Verify(bytes.NewReader(s.Bytes), int64(len(s.Bytes))); err != nil {
			t.Fatal(err)
		}
		w := e.NewWriter(jsonMeta)
		data[len(data)-1] = '1'
		if err := w.Append(data, 1); err != nil {
			t.Fatal(err)
		}
		if err := w.Append([]byte{'\n'}, 1); !errors.Is(err, segment.ErrTooLarge) {
			t.Fatalf("one byte more: %v, want ErrTooLarge", err)
		}
		if _, err := w.Finish(); !errors.Is(err, segment.ErrTooLarge) {
			t.Fatalf("finish: %v, want ErrTooLarge", err)
		}
	})
	t.Run("most frames", func(t *testing.T) {
		e := newEncoder(t, segment.Options{FrameBytes: 1, Level: 1})
		s := seal(t, e, bytesMeta, make([]byte, segment.MaxFrames), 1<<20)
		if d, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes))); err != nil || len(d.Frames) != segment.MaxFrames {
			t.Fatalf("parse: %v", err)
		}
		w := e.NewWriter(bytesMeta)
		if err := w.Append(make([]byte, segment.MaxFrames+1), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Finish(); !errors.Is(err, segment.ErrTooLarge) {
			t.Fatalf("one frame more: %v, want ErrTooLarge", err)
		}
	})
	t.Run("last position", func(t *testing.T) {
		m := bytesMeta
		m.From = math.MaxUint64 - 1
		e := newEncoder(t, segment.Options{})
		s := seal(t, e, m, []byte{1}, 1)
		if s.Refs[0].To != math.MaxUint64 {
			t.Fatalf("ends at %d", s.Refs[0].To)
		}
		if err := e.NewWriter(m).Append([]byte{1, 2}, 1); !errors.Is(err, segment.ErrTooLarge) {
			t.Fatalf("one byte more: %v, want ErrTooLarge", err)
		}
	})
}

func TestAbort(t *testing.T) {
	w := newEncoder(t, segment.Options{}).NewWriter(bytesMeta)
	if err := w.Append([]byte("x"), 1); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	w.Abort()
	if err := w.Append([]byte("x"), 1); !errors.Is(err, segment.ErrFinished) {
		t.Fatalf("append: %v, want ErrFinished", err)
	}
	if _, err := w.Finish(); !errors.Is(err, segment.ErrFinished) {
		t.Fatalf("finish: %v, want ErrFinished", err)
	}
}

func TestOptionBounds(t *testing.T) {
	for _, tc := range []struct {
		o  segment.Options
		ok bool
	}{
		{segment.Options{}, true},
		{segment.Options{FrameBytes: 1, Level: 1, Concurrency: 1}, true},
		{segment.Options{FrameBytes: segment.MaxFrameContent, Level: 22, Concurrency: 8}, true},
		{segment.Options{FrameBytes: -1}, false},
		{segment.Options{FrameBytes: segment.MaxFrameContent + 1}, false},
		{segment.Options{Level: -1}, false},
		{segment.Options{Level: 23}, false},
		{segment.Options{Concurrency: -1}, false},
	} {
		if _, err := segment.NewEncoder(tc.o); (err == nil) != tc.ok {
			t.Errorf("%+v: %v, want ok=%v", tc.o, err, tc.ok)
		}
	}
	if _, err := segment.NewDecoder(segment.DecoderOptions{Concurrency: -1}); err == nil {
		t.Error("a decoder with concurrency -1 was made")
	}
}

// Writers and readers share one encoder and one decoder, and writers each other's
// buffers.
func TestConcurrent(t *testing.T) {
	e, d := newEncoder(t, segment.Options{FrameBytes: 1 << 10, Concurrency: 2}), newDecoder(t)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				data := ndjson(200+g, 10+i)
				w := e.NewWriter(jsonMeta)
				if err := w.Append(data, 1); err != nil {
					t.Error(err)
					return
				}
				s, err := w.Finish()
				if err != nil {
					t.Error(err)
					return
				}
				var got []byte
				at := 0
				for _, f := range s.Refs[0].Frames {
					got, err = d.DecodeFrame(got, s.Bytes[at:at+int(f.Length)], f)
					if err != nil {
						t.Error(err)
						return
					}
					at += int(f.Length)
				}
				if !bytes.Equal(got, data) {
					t.Error(fmt.Errorf("writer %d, segment %d: read other bytes than were written", g, i))
				}
				s.Release()
			}
		})
	}
	wg.Wait()
}
