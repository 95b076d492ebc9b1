package segment

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// DefaultFrameBytes is the content of a frame. Frames of 256 KiB cost about 5 %
	// more than one of 8 MiB and decode in 0.2 ms.
	DefaultFrameBytes = 256 << 10
	// DefaultLevel spends more on compression than the usual level 3: sealing is
	// background work, and its result is kept for years.
	DefaultLevel = 7

	// windowBytes is how far back a match reaches inside of a large message.
	windowBytes = 8 << 20

	// Buffers that grew beyond these, by a rare message or segment, are left to
	// the garbage collector.
	maxKeptContent = 1 << 20
	maxKeptOutput  = 16 << 20
)

// Options configure an [Encoder]. The zero Options are usable.
type Options struct {
	// FrameBytes is the content at which a frame ends, in bytes, at most
	// [MaxFrameContent]. 0 means [DefaultFrameBytes].
	FrameBytes int
	// Level is the zstd level as the command line counts, 1 to 22; the encoder
	// has four, and takes the nearest. 0 means [DefaultLevel].
	Level int
	// Concurrency bounds how many frames are compressed at a time; more writers
	// wait. 0 means 1.
	Concurrency int
}

func (o Options) withDefaults() (Options, error) {
	if o.FrameBytes == 0 {
		o.FrameBytes = DefaultFrameBytes
	}
	if o.Level == 0 {
		o.Level = DefaultLevel
	}
	if o.Concurrency == 0 {
		o.Concurrency = 1
	}
	switch {
	case o.FrameBytes < 1 || o.FrameBytes > MaxFrameContent:
		return o, fmt.Errorf("frame size of %d bytes is not within 1 to %d", o.FrameBytes, MaxFrameContent)
	case o.Level < 1 || o.Level > 22:
		return o, fmt.Errorf("compression level %d is not within 1 to 22", o.Level)
	case o.Concurrency < 1:
		return o, fmt.Errorf("concurrency of %d is less than 1", o.Concurrency)
	}
	return o, nil
}

// Encoder holds what writers share: the compressor, whose tables are large, and
// buffers. It may be used by several goroutines and needs no closing.
type Encoder struct {
	frameBytes int
	zstd       *zstd.Encoder
	contents   bufferPool
	outputs    bufferPool
}

// NewEncoder returns an error only for Options outside of their bounds.
func NewEncoder(o Options) (*Encoder, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("segment encoder: %w", err)
	}
	z, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(o.Level)),
		zstd.WithEncoderConcurrency(o.Concurrency),
		zstd.WithWindowSize(windowBytes),
		// Makes even the smallest frame declare the size of its content, which
		// the decoder and `zstd --list` want to know.
		zstd.WithSingleSegment(true),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, fmt.Errorf("segment encoder: %w", err)
	}
	return &Encoder{
		frameBytes: o.FrameBytes,
		zstd:       z,
		contents:   bufferPool{limit: max(maxKeptContent, o.FrameBytes)},
		outputs:    bufferPool{limit: maxKeptOutput},
	}, nil
}

// bufferPool keeps buffers of at most limit bytes for the next writer.
type bufferPool struct {
	limit int
	pool  sync.Pool
}

func (p *bufferPool) get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return (*b)[:0]
	}
	return nil
}

func (p *bufferPool) put(b []byte) {
	if cap(b) > 0 && cap(b) <= p.limit {
		p.pool.Put(&b)
	}
}
