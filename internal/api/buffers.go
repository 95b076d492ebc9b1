package api

import "sync"

// buffers lends memory for encoding answers.
type buffers struct{ pool sync.Pool }

// get returns an empty buffer with room for n bytes.
func (b *buffers) get(n int) *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok && cap(*buf) >= n {
		return buf
	}
	buf := make([]byte, 0, n)
	return &buf
}

// put takes a buffer back, nil for none. A large one is dropped: it would stay for the
// sake of a rare answer.
func (b *buffers) put(buf *[]byte) {
	if buf != nil && cap(*buf) <= maxPooled {
		*buf = (*buf)[:0]
		b.pool.Put(buf)
	}
}
