package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"
	"testing"

	"github.com/klauspost/compress/zstd"

	"firn/pkg/segment"
)

// compress makes a frame with options of its own.
func compress(t testing.TB, content []byte, o ...zstd.EOption) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, append([]zstd.EOption{zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true)}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	return z.EncodeAll(content, nil)
}

func frameOf(compressed []byte, content int) segment.Frame {
	return segment.Frame{Length: uint32(len(compressed)), Content: uint32(content), CRC: segment.Checksum(compressed)}
}

func TestDecodeFrameAppends(t *testing.T) {
	z := compress(t, []byte("content"))
	got, err := newDecoder(t).DecodeFrame([]byte("before "), z, frameOf(z, 7))
	if err != nil || string(got) != "before content" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestDecodeFrameRefuses(t *testing.T) {
	d := newDecoder(t)
	content := ndjson(100, 10)
	good := compress(t, content)
	silent := compress(t, content[:50], zstd.WithSingleSegment(false)) // too small to declare its size
	skippable := append([]byte{0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}, good...)
	unchecked := compress(t, content, zstd.WithEncoderCRC(false))
	wrongSum := frameOf(good, len(content))
	wrongSum.CRC++
	for _, tc := range []struct {
		name       string
		compressed []byte
		f          segment.Frame
	}{
		{"zero frame", nil, segment.Frame{}},
		{"nothing", nil, frameOf(good, len(content))},
		{"cut short", good[:len(good)-1], frameOf(good, len(content))},
		{"cut short before the catalog saw it", good[:len(good)-1], frameOf(good[:len(good)-1], len(content))},
		{"two frames", append(bytes.Clone(good), good...), frameOf(append(bytes.Clone(good), good...), len(content))},
		{"trailing bytes", append(bytes.Clone(good), 1), frameOf(append(bytes.Clone(good), 1), len(content))},
		{"checksum", good, wrongSum},
		{"less content", good, frameOf(good, len(content)-1)},
		{"more content", good, frameOf(good, len(content)+1)},
		{"size not declared", silent, frameOf(silent, 50)},
		{"no content checksum", unchecked, frameOf(unchecked, len(content))},
		{"skippable first", skippable, frameOf(skippable, len(content))},
		{"not zstd", []byte("hello, world"), frameOf([]byte("hello, world"), 12)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := d.DecodeFrame(nil, tc.compressed, tc.f); !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("decoded %d bytes, %v, want ErrCorrupt", len(got), err)
			}
		})
	}
	if got, err := d.DecodeFrame(nil, good, frameOf(good, len(content))); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("the good frame: %v", err)
	}
}

// A small frame that expands to much costs no more memory than the catalog says
// it may.
func TestDecodeFrameBombs(t *testing.T) {
	d := newDecoder(t)
	bomb := compress(t, make([]byte, segment.MaxFrameContent+1))
	forged := forgeSize(t, bomb, 10_000)
	huge := forgeSize(t, bomb, segment.MaxFrameContent+1)
	small := compress(t, make([]byte, 10_000))
	behind := append(bytes.Clone(small), compress(t, make([]byte, segment.MaxFrameContent/2))...)
	for _, tc := range []struct {
		name string
		z    []byte
		f    segment.Frame
	}{
		{"declared", bomb, frameOf(bomb, segment.MaxFrameContent+1)},
		{"denied by the catalog", bomb, frameOf(bomb, 10_000)},
		{"behind an honest frame", behind, frameOf(behind, 10_000)},
		{"declared as less", forged, frameOf(forged, 10_000)},
		{"declared as more than the catalog says", huge, frameOf(huge, 10_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := d.DecodeFrame(nil, tc.z, tc.f)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("decoded %d bytes, %v, want ErrCorrupt", len(got), err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
				t.Fatalf("allocated %d bytes", n)
			}
		})
	}
}

// forgeSize rewrites the header of a frame to one that declares another size of
// its content.
func forgeSize(t testing.TB, frame []byte, size uint32) []byte {
	t.Helper()
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		t.Fatal(err)
	}
	const descriptor = 2<<6 | 1<<5 | 1<<2 // a size of 4 bytes, single segment, checksum
	forged := []byte{0x28, 0xB5, 0x2F, 0xFD, descriptor}
	forged = binary.LittleEndian.AppendUint32(forged, size)
	return append(forged, frame[h.HeaderSize:]...)
}
