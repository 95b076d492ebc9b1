package hot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

func openWith(t *testing.T, o hot.Options) *hot.Store {
	t.Helper()
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = 1 << 20
	}
	if o.Fatal == nil {
		o.Fatal = func(m string) { panic(m) }
	}
	s, err := hot.Open("hot", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHardLimit(t *testing.T) {
	ctx := context.Background()
	s := openWith(t, hot.Options{HardBytes: 100})
	defer s.Close()
	rec := create(t, s, "a")
	add := func(n int) error {
		_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte(strings.Repeat("x", n))})
		return err
	}
	for _, step := range []struct {
		n    int
		want error
	}{{99, nil}, {1, nil}, {1, stream.ErrHotFull}} {
		if err := add(step.n); !errors.Is(err, step.want) {
			t.Fatalf("append of %d bytes: %v, want %v", step.n, err, step.want)
		}
	}
	if s.Full() == "" {
		t.Error("does not say why appends are refused")
	}
	_, err := s.Create(ctx, hot.Create{Name: stream.Name{Bucket: "default", ID: "b"}, ContentType: "text/plain", Mode: stream.Bytes, Payload: []byte("x")})
	if !errors.Is(err, stream.ErrHotFull) {
		t.Errorf("create with bytes: %v", err)
	}
	create(t, s, "empty")
	sealUpTo(t, s, rec.ID, 40)
	for _, step := range []struct {
		n    int
		want error
	}{{200, nil}, {1, stream.ErrHotFull}} {
		if err := add(step.n); !errors.Is(err, step.want) {
			t.Fatalf("append of %d bytes after eviction: %v, want %v", step.n, err, step.want)
		}
	}
	if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, Close: true}); err != nil {
		t.Fatalf("a close without bytes: %v", err)
	}
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	if s.HotBytes() != 0 || s.Full() != "" {
		t.Fatalf("after the deletion %d bytes are held: %s", s.HotBytes(), s.Full())
	}
}

func TestProducerLimit(t *testing.T) {
	ctx := context.Background()
	s := openWith(t, hot.Options{Producers: 3})
	defer s.Close()
	rec := create(t, s, "a")
	from := func(id string, seq uint64) error {
		_, err := s.Append(ctx, &hot.Append{
			ID: rec.ID, ContentType: "text/plain", Payload: []byte("x"), Producer: &stream.Producer{ID: id, Seq: seq},
		})
		return err
	}
	for i := range 4 {
		want := error(nil)
		if i == 3 {
			want = stream.ErrProducerLimit
		}
		if err := from(fmt.Sprint(i), 0); !errors.Is(err, want) {
			t.Fatalf("producer %d: %v, want %v", i, err, want)
		}
	}
	// Those that are known go on, and are told their retries.
	if err := errors.Join(from("2", 1), from("0", 0)); err != nil {
		t.Fatal(err)
	}
	if tail := appendTo(t, s, rec.ID, "x").Tail.Position; tail != 5 {
		t.Fatalf("tail is %d, want 5", tail)
	}
}

// Payloads about the size of a data value are split at the end of a message where
// one fits, and read back whole.
func TestValueEdges(t *testing.T) {
	ctx := context.Background()
	s := openWith(t, hot.Options{MemTableBytes: 8 << 20})
	defer s.Close()
	line := strings.Repeat("m", 999) + "\n"
	for i, payload := range []string{
		strings.Repeat("x", hot.MaxValue-1), strings.Repeat("x", hot.MaxValue), strings.Repeat("x", hot.MaxValue+1),
		strings.Repeat("x", 2*hot.MaxValue), strings.Repeat("x", 2*hot.MaxValue+1),
	} {
		for _, mode := range []stream.Mode{stream.Bytes, stream.JSON} {
			sent := payload
			if mode == stream.JSON {
				sent = line + payload[:len(payload)-1] + "\n" + line
			}
			r, err := s.Create(ctx, hot.Create{
				Name: stream.Name{Bucket: "default", ID: fmt.Sprint(i, mode)}, ContentType: "text/plain", Mode: mode, Payload: []byte(sent),
			})
			if err != nil {
				t.Fatal(err)
			}
			v := s.View()
			var got []byte
			var ends []int
			err = v.Values(r.Record.ID, 0, r.Record.Tail, func(_ uint64, p []byte) error {
				if len(p) > hot.MaxValue {
					t.Errorf("a value has %d bytes", len(p))
				}
				got = append(got, p...)
				ends = append(ends, len(got))
				return nil
			})
			v.Close()
			if err != nil || string(got) != sent {
				t.Errorf("%d bytes in mode %s were read as %d, %v", len(sent), mode, len(got), err)
			}
			if mode == stream.JSON && (ends[0] != len(line) && ends[0] != len(sent)) {
				t.Errorf("first value ends at %d, want the end of the first message at %d", ends[0], len(line))
			}
		}
	}
}
