package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Decoder verifies and decompresses frames. It may be used by several goroutines
// and needs no closing.
type Decoder struct {
	zstd *zstd.Decoder
}

// DecoderOptions configure a [Decoder]. The zero DecoderOptions are usable.
type DecoderOptions struct {
	// Concurrency bounds how many frames are decompressed at a time; more callers
	// wait. 0 means as many as the process has processors.
	Concurrency int
}

// NewDecoder returns an error only for options outside of their bounds.
func NewDecoder(o DecoderOptions) (*Decoder, error) {
	z, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(o.Concurrency),
		zstd.WithDecoderMaxMemory(MaxFrameContent),
		zstd.WithDecoderMaxWindow(MaxFrameContent),
		zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("segment decoder: %w", err)
	}
	return &Decoder{zstd: z}, nil
}

// DecodeFrame appends the content of one frame to dst. Before a byte is
// decompressed the CRC32C of the compressed frame is verified, before it returns
// the frame's own checksum and the exact length. Nothing that the frame says can
// make dst grow by more than f.Content, and that is at most [MaxFrameContent].
//
// Errors: [ErrCorrupt].
func (d *Decoder) DecodeFrame(dst, compressed []byte, f Frame) ([]byte, error) {
	if err := f.check(); err != nil {
		return nil, corrupt("%v", err)
	}
	if uint64(len(compressed)) != uint64(f.Length) {
		return nil, corrupt("frame has %d bytes, want %d", len(compressed), f.Length)
	}
	if sum := checksum(compressed); sum != f.CRC {
		return nil, corrupt("frame has checksum %08x, want %08x", sum, f.CRC)
	}
	if err := checkHeader(compressed, f); err != nil {
		return nil, err
	}
	start, end := len(dst), len(dst)+int(f.Content)
	dst = slices.Grow(dst, int(f.Content))
	// The capacity is the limit: what decompresses to more is refused there.
	out, err := d.zstd.DecodeAll(compressed, dst[:start:end])
	if err != nil {
		return nil, corrupt("frame: %v", err)
	}
	if len(out) != end {
		return nil, corrupt("frame has %d bytes of content, want %d", len(out)-start, f.Content)
	}
	return out, nil
}

// checkHeader refuses frames that lie about the size of their content before
// memory is allocated for it, and frames without a checksum of their content,
// which skippable ones are too.
func checkHeader(compressed []byte, f Frame) error {
	var h zstd.Header
	if err := h.Decode(compressed); err != nil {
		return corrupt("frame header: %v", err)
	}
	switch {
	case !h.HasCheckSum:
		return corrupt("frame has no content checksum")
	case !h.HasFCS || h.FrameContentSize != uint64(f.Content):
		return corrupt("frame declares %d bytes of content, want %d", h.FrameContentSize, f.Content)
	}
	return nil
}
