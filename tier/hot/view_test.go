package hot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// sealUpTo seals and evicts a stream's bytes below a position; what the object would
// hold does not matter.
func sealUpTo(t testing.TB, s *hot.Store, id stream.ID, to uint64) {
	t.Helper()
	ctx := context.Background()
	v := s.View()
	rec, err := v.Incarnation(id)
	v.Close()
	if err != nil {
		t.Fatal(err)
	}
	n := uint32(to - rec.Sealed)
	ref := segment.Ref{
		Object: fmt.Sprintf("%s/%d", id, rec.Sealed), From: rec.Sealed, To: to, Length: 1,
		Frames: []segment.Frame{{Length: 1, Content: n}},
	}
	if err := errors.Join(s.Intend(ctx, ref.Object), s.Seal(ctx, hot.Seal{ID: id, Ref: ref, Size: 1}), s.Evict(ctx, id, to)); err != nil {
		t.Fatal(err)
	}
}

// While a stream grows and its hot bytes are given up, every view shows a record and
// exactly the bytes that it promises.
func TestViewsAreConsistent(t *testing.T) {
	const writers, appends = 4, 200
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	var done atomic.Bool
	var readers, rest sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			last := uint64(0)
			for !done.Load() {
				v := s.View()
				r, err := v.Stream(rec.Name)
				if err != nil {
					t.Error(err)
					v.Close()
					return
				}
				data, err := v.Data(nil, r.ID, r.Cut, r.Tail)
				v.Close()
				if err != nil || uint64(len(data)) != r.Hot() || r.Tail < last || r.Tail%8 != 0 {
					t.Errorf("view shows %+v with %d bytes, %v; before, the tail was %d", r.Marks, len(data), err, last)
					return
				}
				if bytes.Count(data, []byte{'\n'}) != len(data)/8 {
					t.Errorf("view shows torn appends: %q", data)
					return
				}
				last = r.Tail
			}
		})
	}
	for w := range writers {
		rest.Go(func() {
			for i := range appends {
				appendTo(t, s, rec.ID, fmt.Sprintf("%d:%05d\n", w, i))
			}
		})
	}
	rest.Go(func() {
		for range 50 {
			v := s.View()
			r, err := v.Incarnation(rec.ID)
			v.Close()
			if err != nil {
				t.Error(err)
				return
			}
			if r.Sealed < r.Tail {
				sealUpTo(t, s, rec.ID, r.Tail)
			}
		}
	})
	rest.Wait()
	done.Store(true)
	readers.Wait()
}

// A view goes on showing what it showed, whatever happens afterwards.
func TestViewOutlivesChanges(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	appendTo(t, s, rec.ID, "hello")
	v := s.View()
	defer v.Close()

	appendTo(t, s, rec.ID, " world")
	sealUpTo(t, s, rec.ID, 11)
	if err := s.Delete(ctx, rec.ID); err != nil {
		t.Fatal(err)
	}
	next := create(t, s, "a")
	appendTo(t, s, next.ID, "other")

	old, err := v.Stream(rec.Name)
	if err != nil || old.ID != rec.ID || old.Tail != 5 || old.Cut != 0 {
		t.Fatalf("view shows %+v, %v", old, err)
	}
	if data, err := v.Data(nil, rec.ID, 0, 5); err != nil || string(data) != "hello" {
		t.Fatalf("view shows %q, %v", data, err)
	}
	if _, err := v.Incarnation(next.ID); !errors.Is(err, stream.ErrNotFound) {
		t.Fatalf("view shows a stream that was made after it: %v", err)
	}
}

// Bytes that are not there are damage, never fewer bytes.
func TestDataOutsideOfTheHotRange(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	appendTo(t, s, rec.ID, "hello")
	appendTo(t, s, rec.ID, "world")
	sealUpTo(t, s, rec.ID, 7)
	v := s.View()
	defer v.Close()
	for _, c := range []struct {
		from, to uint64
		want     string
		err      error
	}{
		{7, 10, "rld", nil}, {8, 9, "l", nil}, {10, 10, "", nil}, {9, 8, "", nil},
		{0, 10, "", hot.ErrDamaged}, {4, 6, "", hot.ErrDamaged}, {9, 11, "d", hot.ErrDamaged}, {10, 11, "", hot.ErrDamaged},
	} {
		data, err := v.Data(nil, rec.ID, c.from, c.to)
		if !errors.Is(err, c.err) || string(data) != c.want {
			t.Errorf("[%d,%d) is %q, %v; want %q, %v", c.from, c.to, data, err, c.want, c.err)
		}
	}
	if _, err := v.Segment(rec.ID, 7); !errors.Is(err, hot.ErrDamaged) {
		t.Errorf("segment past the sealed mark: %v", err)
	}
	if ref, err := v.Segment(rec.ID, 6); err != nil || ref.To != 7 {
		t.Errorf("segment below the sealed mark: %+v, %v", ref, err)
	}
}
