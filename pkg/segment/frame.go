package segment

import (
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	// MaxFrameContent bounds the content of one frame, in bytes, and with it the
	// largest message and the memory that decoding takes.
	MaxFrameContent = 64 << 20
	// MaxFrames bounds the frames of one object.
	MaxFrames = 1 << 16
)

// Frame is one independently compressed piece of an object.
type Frame struct {
	// Length is the size of the compressed frame, in bytes.
	Length uint32
	// Content is the size of what it decompresses to, at most [MaxFrameContent].
	Content uint32
	// CRC is the CRC32C (Castagnoli) of the compressed frame.
	CRC uint32
	// TimeMs is when the first byte of the content was appended, in milliseconds
	// since 1970.
	TimeMs uint64
}

// check refuses sizes that no writer produces.
func (f Frame) check() error {
	switch {
	case f.Content == 0 || f.Length == 0:
		return errors.New("frame is empty")
	case f.Content > MaxFrameContent:
		return fmt.Errorf("frame of %d bytes exceeds the limit of %d", f.Content, MaxFrameContent)
	case f.Length > maxLength(f.Content):
		return fmt.Errorf("compressed frame of %d bytes is too long for %d bytes of content", f.Length, f.Content)
	}
	return nil
}

// maxLength bounds a compressed frame. zstd stores what it cannot compress, at 3
// bytes for each 128 KiB block, in a header and a checksum of at most 22 bytes.
func maxLength(content uint32) uint32 { return content + content>>8 + 128 }

// checkFrames checks each frame and returns the totals, in bytes.
func checkFrames(frames []Frame) (length, content uint64, err error) {
	if len(frames) == 0 {
		return 0, 0, errors.New("no frames")
	}
	if len(frames) > MaxFrames {
		return 0, 0, fmt.Errorf("%d frames exceed the limit of %d", len(frames), MaxFrames)
	}
	for i, f := range frames {
		if err := f.check(); err != nil {
			return 0, 0, fmt.Errorf("frame %d: %w", i, err)
		}
		length += uint64(f.Length)
		content += uint64(f.Content)
	}
	return length, content, nil
}

// castagnoli is the table of the checksum that storage hardware computes.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
