package api

import (
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// zstdWindow is how far back an encoder looks. More costs memory, here and in clients,
// and gains nothing measurable on events. Browsers take up to 8 MiB (RFC 9659).
const zstdWindow = 512 << 10

// encoders is a bounded number of encoders. They are made when they are first needed
// and then kept: one takes up to 3 MiB.
type encoders chan *encoder

func newEncoders(n int) encoders {
	e := make(encoders, n)
	for range n {
		e <- new(encoder)
	}
	return e
}

// take returns an encoder, which is to be put back; nil when all are at work, unless
// the caller rather waits.
func (e encoders) take(wait bool) *encoder {
	if wait {
		return <-e
	}
	select {
	case got := <-e:
		return got
	default:
		return nil
	}
}

func (e encoders) put(used *encoder) { e <- used }

// encoder has one writer a coding. Levels are the cheapest: on JSON events they are at
// about a quarter of the size, as are those of three times the price.
type encoder struct {
	gzip *gzip.Writer
	zstd *zstd.Encoder
}

// encode appends body, encoded, to dst.
func (e *encoder) encode(dst, body []byte, c coding) []byte {
	if c == zstdCoding {
		return e.zstdEncoder().EncodeAll(body, dst)
	}
	out := appender{dst}
	w := e.writer(&out, c)
	w.Write(body) // an appender does not fail
	w.Close()
	e.forget(c)
	return out.bytes
}

// writer begins a coded stream to w. Only Close makes it whole; without it no decoder
// takes it for whole.
func (e *encoder) writer(w io.Writer, c coding) io.WriteCloser {
	if c == zstdCoding {
		z := e.zstdEncoder()
		z.Reset(w)
		return z
	}
	if e.gzip == nil {
		z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
		if err != nil {
			panic(err) // of the level alone
		}
		e.gzip = z
	} else {
		e.gzip.Reset(w)
	}
	return e.gzip
}

func (e *encoder) zstdEncoder() *zstd.Encoder {
	if e.zstd == nil {
		z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(zstdWindow), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // of the options alone
		}
		e.zstd = z
	}
	return e.zstd
}

// forget lets go of what the last writer wrote to.
func (e *encoder) forget(c coding) {
	if c == zstdCoding {
		e.zstd.Reset(nil)
	} else {
		e.gzip.Reset(io.Discard)
	}
}

// appender is a writer into memory.
type appender struct{ bytes []byte }

// Write does not fail.
func (a *appender) Write(p []byte) (int, error) {
	a.bytes = append(a.bytes, p...)
	return len(p), nil
}
