package tiertest

import (
	"encoding/hex"
	"math/rand/v2"
	"time"

	"firn/pkg/stream"
)

// payload makes the stored bytes of an op: of exactly its size, and for JSON whole
// messages. Different seeds give different bytes, so that one payload is never
// taken for another.
func (o Op) payload(json bool) []byte {
	if o.Size == 0 {
		return nil
	}
	r := rand.NewChaCha8([32]byte{byte(o.Fill), byte(o.Fill >> 8), byte(o.Fill >> 16), byte(o.Fill >> 24), byte(o.Fill >> 32)})
	raw := make([]byte, o.Size)
	r.Read(raw)
	if !json {
		return raw
	}
	// Each message is a JSON text of hexadecimal digits in quotes, and an LF.
	text := []byte(hex.EncodeToString(raw))[:o.Size]
	pick := rand.New(r)
	for start := 0; start < o.Size; {
		n := o.Size - start
		if n > 8 && pick.IntN(4) > 0 {
			n = 4 + pick.IntN(n-7)
		}
		if n < 4 {
			for i := range n - 1 {
				text[start+i] = '1'
			}
		} else {
			text[start], text[start+n-2] = '"', '"'
		}
		text[start+n-1] = '\n'
		start += n
	}
	if o.Size == 1 {
		text = []byte("1\n")
	}
	return text
}

func (o Op) contentType() string {
	switch {
	case o.Type != "":
		return o.Type
	case o.JSON:
		return "application/json"
	}
	return "text/plain"
}

func (o Op) lifetime() stream.Lifetime {
	switch {
	case o.TTL < 0:
		return stream.Lifetime{Sliding: true}
	case o.TTL > 0:
		return stream.Lifetime{Sliding: true, TTL: uint64(o.TTL)}
	case o.Expires > 0:
		return stream.Lifetime{At: time.UnixMilli(int64(o.Expires)).UTC()}
	}
	return stream.Lifetime{}
}
