package sim

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"strings"

	"firn/pkg/stream"
)

// payload is what a step sends, as a client sends it and as it is stored. Different
// seeds give different bytes, so that one payload is never taken for another.
func (s Step) payload(json bool) (body, stored []byte) {
	if s.Size == 0 {
		return nil, nil
	}
	r := rand.New(rand.NewPCG(s.Fill, 77))
	raw := make([]byte, s.Size)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	if !json {
		return raw, raw
	}
	text := hex.EncodeToString(raw)[:s.Size]
	var messages []string
	for len(text) > 0 {
		n := min(len(text), 1+r.IntN(40))
		messages = append(messages, `"`+text[:n]+`"`)
		text = text[n:]
	}
	stored = []byte(strings.Join(messages, "\n") + "\n")
	if len(messages) == 1 && r.IntN(2) == 0 {
		return []byte(" " + messages[0] + "\n"), stored
	}
	return []byte("[" + strings.Join(messages, " ,\n") + "]"), stored
}

// blob is the content of a snapshot.
func (s Step) blob() []byte {
	r := rand.New(rand.NewPCG(s.Fill, 78))
	raw := make([]byte, s.Size)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return raw
}

// nameOf reads an id or "bucket/id".
func nameOf(s string) stream.Name {
	if bucket, id, ok := strings.Cut(s, "/"); ok {
		return stream.Name{Bucket: bucket, ID: id}
	}
	return stream.Name{Bucket: stream.DefaultBucket, ID: s}
}

func (s *life) contentType() string {
	if s.json {
		return "application/json"
	}
	return "text/plain"
}

// boundary reports whether a reader may begin at a position.
func (s *life) boundary(pos uint64) bool {
	return !s.json || pos == 0 || pos >= s.tail() || s.content[pos-1] == '\n'
}

// boundaryAfter is the first boundary at or after a position.
func (s *life) boundaryAfter(pos uint64) uint64 {
	if pos >= s.tail() || s.boundary(pos) {
		return pos
	}
	return pos + uint64(bytes.IndexByte(s.content[pos:], '\n')) + 1
}

// place is where a step's At and Off lead to.
func (s *life) place(at, off int) uint64 {
	pos := s.boundaryAfter(s.earliest + (s.tail()-s.earliest)*uint64(at)/1000)
	return uint64(max(int64(pos)+int64(off), 0))
}
