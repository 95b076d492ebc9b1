package hot_test

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// flushed closes a store and opens and closes it again, so that all is in tables.
func flushed(t *testing.T, s *hot.Store, fs vfs.FS) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openWith(t, hot.Options{FS: fs}).Close(); err != nil {
		t.Fatal(err)
	}
}

// A command that meets a damaged block stopped the process, and did so again after each
// restart. It is refused, and what was queued with it is done.
func TestDamageIsRefusedAndStopsNobody(t *testing.T) {
	ctx := context.Background()
	d := disk.New()
	fs := d.FS()
	s := openWith(t, hot.Options{FS: fs})
	hurt, whole := create(t, s, "hurt"), create(t, s, "whole")
	noise := make([]byte, 100<<10)
	mathrand.NewChaCha8([32]byte{}).Read(noise)
	for i := range 10 {
		if _, err := s.Append(ctx, &hot.Append{ID: hurt.ID, ContentType: "text/plain", Payload: noise[i*10<<10 : (i+1)*10<<10]}); err != nil {
			t.Fatal(err)
		}
	}
	flushed(t, s, fs)
	if n, err := d.Damage("hot", noise[35<<10:35<<10+64]); n == 0 || err != nil {
		t.Fatalf("%d tables damaged: %v", n, err)
	}

	s = openWith(t, hot.Options{FS: fs, CacheBytes: 1 << 20}) // its Fatal panics
	outcomes := make(chan error, 64)
	for range cap(outcomes) / 2 { // they share batches
		go func() {
			_, err := s.Append(ctx, &hot.Append{ID: whole.ID, ContentType: "text/plain", Payload: []byte("x")})
			outcomes <- err
		}()
		go func() {
			err := sealTo(s, hurt.ID, 35<<10)
			if errors.Is(err, hot.ErrDamaged) {
				err = nil
			} else if err == nil {
				err = errors.New("sealed over damage")
			}
			outcomes <- err
		}()
	}
	for range cap(outcomes) {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if got := current(t, s, whole.ID).Tail; got != uint64(cap(outcomes)/2) {
		t.Errorf("the other stream has %d bytes of %d", got, cap(outcomes)/2)
	}
	if rec := current(t, s, hurt.ID); rec.Sealed != 0 || rec.Segments != 0 {
		t.Errorf("the refused command has left sealed %d with %d segments", rec.Sealed, rec.Segments)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openWith(t, hot.Options{FS: fs})
	if got := current(t, s, whole.ID).Tail; got != uint64(cap(outcomes)/2) {
		t.Errorf("after a restart the other stream has %d bytes", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// sealTo seals the first bytes of a stream into an object of its own.
func sealTo(s *hot.Store, id stream.ID, to uint64) error {
	ref := segment.Ref{
		Object: rand.Text(), To: to, Length: 1, Frames: []segment.Frame{{Length: 1, Content: uint32(to)}},
	}
	if err := s.Intend(context.Background(), ref.Object); err != nil {
		return err
	}
	return s.Seal(context.Background(), hot.Seal{ID: id, Ref: ref, Size: 1})
}
