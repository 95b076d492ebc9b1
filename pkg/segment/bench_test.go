package segment_test

import (
	"bytes"
	"fmt"
	"testing"

	"firn/pkg/segment"
)

func BenchmarkWrite(b *testing.B) {
	data := events(8 << 20)
	for _, level := range []int{1, 3, segment.DefaultLevel} {
		b.Run(fmt.Sprintf("level=%d", level), func(b *testing.B) {
			e := newEncoder(b, segment.Options{Level: level})
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			var size int
			for b.Loop() {
				s := seal(b, e, jsonMeta, data, 64<<10)
				size = len(s.Bytes)
				s.Release()
			}
			b.ReportMetric(float64(len(data))/float64(size), "ratio")
		})
	}
}

func BenchmarkDecodeFrame(b *testing.B) {
	d := newDecoder(b)
	s := seal(b, newEncoder(b, segment.Options{}), jsonMeta, events(1<<20), 1<<20)
	f := s.Refs[0].Frames[0]
	b.SetBytes(int64(f.Content))
	b.ReportAllocs()
	dst := make([]byte, 0, f.Content)
	for b.Loop() {
		if _, err := d.DecodeFrame(dst, s.Bytes[:f.Length], f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	d := newDecoder(b)
	data := events(8 << 20)
	s := seal(b, newEncoder(b, segment.Options{}), jsonMeta, data, 1<<20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Verify(bytes.NewReader(s.Bytes), int64(len(s.Bytes))); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseRef(b *testing.B) {
	s := seal(b, newEncoder(b, segment.Options{}), jsonMeta, events(8<<20), 1<<20)
	enc, err := s.Refs[0].AppendBinary(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(enc)), "B/ref")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := segment.ParseRef(enc); err != nil {
			b.Fatal(err)
		}
	}
}
