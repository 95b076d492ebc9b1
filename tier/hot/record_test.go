package hot_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// samples are records with everything unset, everything set, and random ones.
func samples() []*hot.Record {
	seq := ""
	full := &hot.Record{
		ID: math.MaxUint64, Name: stream.Name{Bucket: "bucket", ID: "räume/1"}, Life: 1, ContentType: "application/json",
		Mode: stream.JSON, CreatedAt: math.MaxUint64, LastWrite: 2, Lifetime: stream.Lifetime{Sliding: true, TTL: stream.MaxTTL},
		Asked: stream.Lifetime{At: time.Date(1960, 1, 2, 3, 4, 5, 999_999_999, time.UTC)}, Deadline: 3, Closed: true,
		Closer: &stream.Producer{ID: "p", Epoch: stream.MaxProducerNumber, Seq: 4}, Deleted: true, Seq: &seq, Producers: 5,
		Marks: hot.Marks{Base: 6, Floor: 7, Cut: 8, Sealed: 9, Tail: math.MaxUint64}, Earliest: 10, Need: hot.Never,
		Segments: 11, UnsealedSince: 12, Ready: true, Forks: 13,
		Fork:     &hot.Fork{Source: 14, From: stream.Name{Bucket: "other", ID: "x"}, Anchor: 15, SubOffset: 16},
		Snapshot: &hot.Snapshot{Position: 17, Object: "object", Size: math.MaxInt64, ContentType: "text/plain", CRC: math.MaxUint32},
	}
	list := []*hot.Record{{ID: 1, Mode: stream.Bytes}, full}
	r := rand.New(rand.NewPCG(1, 2))
	number := func() uint64 { return r.Uint64() >> r.UintN(64) }
	for range 200 {
		c := *full
		c.ID, c.Life, c.CreatedAt, c.LastWrite, c.Deadline = stream.ID(number()), number(), number(), number(), number()
		c.Marks = hot.Marks{Base: number(), Floor: number(), Cut: number(), Sealed: number(), Tail: number()}
		c.Earliest, c.Need, c.Segments, c.UnsealedSince, c.Forks = number(), number(), number(), number(), number()
		c.Closed, c.Deleted, c.Ready = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
		if r.IntN(2) == 0 {
			c.Closer = nil
		}
		if r.IntN(2) == 0 {
			c.Seq = nil
		}
		if r.IntN(2) == 0 {
			c.Fork = nil
		}
		if r.IntN(2) == 0 {
			c.Snapshot = nil
		}
		if r.IntN(2) == 0 {
			c.Lifetime = stream.Lifetime{}
		}
		list = append(list, &c)
	}
	return list
}

func TestRecordRoundTrip(t *testing.T) {
	for _, r := range samples() {
		b := r.Encode()
		got, err := hot.DecodeRecord(r.ID, b)
		if err != nil || !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote %+v, read %+v, %v", r, got, err)
		}
		for n := range b {
			if _, err := hot.DecodeRecord(r.ID, b[:n]); err == nil {
				t.Fatalf("%d of %d bytes of %+v were taken", n, len(b), r)
			}
		}
		if _, err := hot.DecodeRecord(r.ID, append(b, 0)); err == nil {
			t.Fatalf("a byte more than %+v was taken", r)
		}
	}
}

func TestRecordOfAnotherReleaseIsRefused(t *testing.T) {
	b := samples()[0].Encode()
	b[0]++
	if r, err := hot.DecodeRecord(1, b); err == nil {
		t.Fatalf("got %+v", r)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range samples()[:20] {
		f.Add(r.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		hot.DecodeAny(b)
		r, err := hot.DecodeRecord(7, b)
		if err != nil {
			return
		}
		again, err := hot.DecodeRecord(7, r.Encode())
		if err != nil || !bytes.Equal(again.Encode(), r.Encode()) {
			t.Fatalf("read %+v, and of what it writes %+v, %v", r, again, err)
		}
	})
}
