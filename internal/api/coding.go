package api

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
)

// coding is a content coding that answers are sent in (RFC 9110 §8.4.1).
type coding uint8

const (
	identity coding = iota
	gzipCoding
	zstdCoding
	codings
)

// String is the coding's token, "" for identity, which has none.
func (c coding) String() string { return [codings]string{"", "gzip", "zstd"}[c] }

// codedFrom is the size from which on an answer is compressed: what is saved on less
// fits into the packet that goes out anyway.
const codedFrom = 1 << 10

// coder compresses answers.
type coder struct {
	// whole encodes bodies that are in memory. It is as many as processors, each taken
	// for the time of the work alone.
	whole encoders
	// streamed encodes blobs on their way, each for as long as its client takes.
	streamed encoders
	buffers  *buffers
	metrics  *metrics
}

// streamedEncoders bounds the blobs that are compressed at a time, and with it the
// memory for that: about 20 MiB.
const streamedEncoders = 8

func newCoder(b *buffers, m *metrics) *coder {
	return &coder{
		whole:    newEncoders(runtime.GOMAXPROCS(0)),
		streamed: newEncoders(streamedEncoders),
		buffers:  b,
		metrics:  m,
	}
}

// varies says that the answer may be another with another Accept-Encoding, whether it is
// coded or not (RFC 9110 §12.5.5).
func (a *answer) varies() {
	if a.coder == nil {
		return
	}
	h := a.Header()
	if v := h[headerVary]; v != nil {
		h[headerVary] = append(slices.Clip(v), headerAcceptEncoding)
	} else {
		h[headerVary] = variesByCoding
	}
}

var variesByCoding = []string{headerAcceptEncoding}

// negotiate chooses the coding for a body of n bytes. With must it is not to be sent
// as it is, be it worth while or not; when no coding is accepted at all, it is.
func (a *answer) negotiate(n int64) (c coding, must bool) {
	if a.coder == nil || a.request.Header[headerAcceptEncoding] == nil || n == 0 {
		return identity, false
	}
	want := acceptedBy(a.request)
	c, must = want.best(), want.weights[identity] == 0
	if n < codedFrom && !must {
		c = identity
	}
	return c, must
}

// encode returns a body as the client wants it, nil where it is to be sent as it is, and
// sets the headers that tell. The copy goes back to the coder's buffers after use.
func (a *answer) encode(body []byte) *[]byte {
	c, must := a.negotiate(int64(len(body)))
	if c == identity || !must && a.compressibility() == compressed {
		return nil
	}
	e := a.coder.whole.take(must)
	if e == nil {
		a.coder.metrics.codingBusy.Inc()
		return nil
	}
	defer a.coder.whole.put(e)
	out := a.coder.buffers.get(len(body)/4 + 64)
	*out = e.encode(*out, body, c)
	if len(*out) >= len(body) && !must {
		a.coder.buffers.put(out)
		return nil
	}
	a.coder.metrics.coded(c, int64(len(body)), int64(len(*out)))
	a.coded(c)
	return out
}

func (a *answer) compressibility() compressibility {
	return compressibilityOf(a.Header().Get(headerContentType))
}

// coded sets the headers of an answer in a coding.
func (a *answer) coded(c coding) {
	h := a.Header()
	h.Set(headerContentEncoding, c.String())
	if tag := h.Get(headerETag); tag != "" {
		h.Set(headerETag, codedTag(tag, c))
	}
}

// send answers with a body that is in memory. The header has its type.
func (a *answer) send(status int, body []byte) {
	a.varies()
	if coded := a.encode(body); coded != nil {
		defer a.coder.buffers.put(coded)
		body = *coded
	}
	a.deliver(status, body)
}

// deliver sends a body as it is. The client's leaving is no error.
func (a *answer) deliver(status int, body []byte) {
	a.Header().Set(headerContentLength, strconv.Itoa(len(body)))
	a.WriteHeader(status)
	if len(body) > 0 && a.request.Method != http.MethodHead {
		a.Write(body)
	}
}
