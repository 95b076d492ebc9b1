package bench

import (
	"fmt"
	"math/rand/v2"
)

// payload makes records that compress about as real ones do: the same ones in each run.
type payload struct {
	random *rand.Rand
	json   bool
	n      int
}

func newPayload(contentType string) *payload {
	return &payload{random: rand.New(rand.NewPCG(1, 2)), json: contentType == typeJSON}
}

// record appends a record of size bytes, at least 80: a JSON object in ASCII.
func (p *payload) record(b []byte, size int) []byte {
	end := len(b) + size
	b = fmt.Appendf(b, `{"n":%d,"user":"u-%06d","kind":"page_view","path":"/item/%d","text":"`, p.n, p.random.IntN(1e6), p.random.IntN(1e5))
	p.n++
	const letters = "0123456789abcdef"
	for len(b) < end-2 {
		b = append(b, letters[p.random.IntN(len(letters))])
	}
	return append(b, `"}`...)
}

// body returns records of together about total bytes as one append carries them, and the
// bytes that are stored of it.
func (p *payload) body(total, size int) ([]byte, int64) {
	return p.records(max(1, total/size), size)
}

// records is body for so many records.
func (p *payload) records(n, size int) ([]byte, int64) {
	var b []byte
	if !p.json {
		for range n {
			b = p.record(b, size)
		}
		return b, int64(len(b))
	}
	b = append(b, '[')
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = p.record(b, size)
	}
	// Stored, each message has a line end, as here each a comma or bracket.
	return append(b, ']'), int64(len(b))
}
