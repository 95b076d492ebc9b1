package segment_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

var (
	jsonMeta = segment.Meta{
		Store:       "store-1",
		Name:        stream.Name{Bucket: "metrics", ID: "räume/1"},
		Incarnation: 0x1122334455667788,
		Life:        1_700_000_000_000,
		Mode:        stream.JSON,
		ContentType: "application/json; charset=utf-8",
		CreatedMs:   1_700_000_000_123,
		From:        4096,
	}
	bytesMeta = segment.Meta{
		Store:       "store-1",
		Name:        stream.Name{Bucket: "default", ID: "log"},
		Incarnation: 0x8877665544332211,
		Life:        1_700_000_000_001,
		Mode:        stream.Bytes,
		ContentType: "application/octet-stream",
		CreatedMs:   1_700_000_000_001,
	}
)

func newEncoder(t testing.TB, o segment.Options) *segment.Encoder {
	t.Helper()
	e, err := segment.NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newDecoder(t testing.TB) *segment.Decoder {
	t.Helper()
	d, err := segment.NewDecoder(segment.DecoderOptions{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// seal appends data in chunks, one millisecond apart, and finishes.
func seal(t testing.TB, e *segment.Encoder, m segment.Meta, data []byte, chunk int) *segment.Sealed {
	t.Helper()
	w := e.NewWriter(m)
	ms := m.CreatedMs
	for rest := data; len(rest) > 0; ms++ {
		n := min(chunk, len(rest))
		if err := w.Append(rest[:n], ms); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	s, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s.Name("an/object")
	return s
}

// read returns the positions [from,to) as a reader of the object would get them:
// by the one byte range of the span.
func read(t testing.TB, d *segment.Decoder, object []byte, r *segment.Ref, from, to uint64) []byte {
	t.Helper()
	s, err := r.Span(from, to)
	if err != nil {
		t.Fatal(err)
	}
	body := object[s.Offset : s.Offset+s.Length]
	var out []byte
	at := from
	for _, p := range s.Parts {
		if p.From != at || p.To <= p.From {
			t.Fatalf("part is [%d,%d), want some bytes from %d", p.From, p.To, at)
		}
		content, err := d.DecodeFrame(nil, body[:p.Length], p.Frame)
		if err != nil {
			t.Fatal(err)
		}
		body = body[p.Length:]
		out = append(out, p.Cut(content)...)
		at = p.To
	}
	if at != to || len(body) != 0 {
		t.Fatalf("parts end at %d with %d bytes unread, want %d and 0", at, len(body), to)
	}
	return out
}

// ndjson returns n messages of size bytes each, LF included (at least 2).
func ndjson(n, size int) []byte {
	var b bytes.Buffer
	for i := range n {
		s := fmt.Sprint(i)
		s = s[:min(len(s), size-1)]
		b.WriteString(s)
		b.Write(bytes.Repeat([]byte{'0'}, size-1-len(s)))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// events returns messages that look like an event log, about n bytes of them.
func events(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	var b bytes.Buffer
	for b.Len() < n {
		fmt.Fprintf(&b, `{"id":"%016x","user":%d,"kind":"page.view","path":"/item/%d","latency_ms":%.3f,"ok":true}`+"\n",
			r.Uint64(), r.IntN(5000), r.IntN(300), r.Float64()*250)
	}
	return b.Bytes()
}

// noise returns n bytes that do not compress.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// packMeta is the i-th stream of a pack.
func packMeta(i int) segment.Meta {
	m := jsonMeta
	m.Name.ID, m.ContentType = fmt.Sprintf("s%d", i), "application/json"
	m.Incarnation, m.Life, m.CreatedMs, m.From = stream.ID(i+1), uint64(10+i), uint64(20+i), uint64(100*i)
	return m
}

// sealPack makes an object of ranges of several streams, appended in chunks, one
// millisecond apart.
func sealPack(t testing.TB, e *segment.Encoder, metas []segment.Meta, contents [][]byte, chunk int) *segment.Sealed {
	t.Helper()
	w := e.NewWriter(metas[0])
	ms := jsonMeta.CreatedMs
	for i, rest := range contents {
		if i > 0 {
			if err := w.Begin(metas[i]); err != nil {
				t.Fatal(err)
			}
		}
		for ; len(rest) > 0; ms++ {
			n := min(chunk, len(rest))
			if err := w.Append(rest[:n], ms); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
	}
	s, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s.Name("a/pack")
	return s
}

// pack builds an object of three streams over frames that they share. It returns
// the bytes of each.
func pack(t testing.TB) (object []byte, d *segment.Descriptor, contents [][]byte) {
	t.Helper()
	contents = [][]byte{ndjson(4, 20), ndjson(10, 16), ndjson(5, 8)}
	metas := []segment.Meta{packMeta(0), packMeta(1), packMeta(2)}
	s := sealPack(t, newEncoder(t, segment.Options{FrameBytes: 64}), metas, contents, 1<<20)
	d, err := segment.ParseTail(s.Bytes, int64(len(s.Bytes)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Bytes, d, contents
}
