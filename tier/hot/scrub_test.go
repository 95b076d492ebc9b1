package hot_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// inObject seals a byte of a new stream into an object of a name.
func inObject(t *testing.T, s *hot.Store, id, object string) stream.ID {
	t.Helper()
	ctx := context.Background()
	rec := create(t, s, id)
	_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
	ref := segment.Ref{Object: object, Length: 9, To: 1, Frames: []segment.Frame{{Length: 9, Content: 1, TimeMs: 1}}}
	if err = errors.Join(err, s.Intend(ctx, object), s.Seal(ctx, hot.Seal{ID: rec.ID, Ref: ref, Size: 100})); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

func TestDamageIsRememberedOfLiveObjects(t *testing.T) {
	ctx, fs := context.Background(), vfs.NewMem()
	s := open(t, fs)
	id := inObject(t, s, "a", "one")
	inObject(t, s, "b", "two")
	mark := hot.Mark{Object: "one", Began: 5, Skipped: true, Whole: 3}
	err := errors.Join(
		s.Intend(ctx, "three"), s.SetMark(ctx, hot.Mark{Object: "zero"}), s.SetMark(ctx, mark),
		s.NoteDamage(ctx, "one", hot.Missing), s.NoteDamage(ctx, "two", hot.Corrupt), s.NoteDamage(ctx, "two", 0),
		s.NoteDamage(ctx, "four", 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []string{"three", "four"} {
		if err := s.NoteDamage(ctx, object, hot.Missing); !errors.Is(err, hot.ErrConflict) {
			t.Errorf("damage of %s, which is not live: %v", object, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, fs)
	defer s.Close()
	look := func(want ...string) {
		t.Helper()
		v := s.View()
		defer v.Close()
		list, err := v.Damaged("", 10)
		var keys []string
		for _, d := range list {
			keys = append(keys, d.Object)
		}
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("damaged are %q, %v; want %q", keys, err, want)
		}
		if m, err := v.Mark(); err != nil || m != mark {
			t.Errorf("mark is %+v, %v", m, err)
		}
		var live []string
		err = v.LiveObjects("", func(l hot.LiveObject) bool {
			live = append(live, l.Key)
			return true
		})
		if want := []string{"one", "two"}; err != nil || !slices.Equal(live, want) {
			t.Errorf("live are %q, %v", live, err)
		}
		c, err := verify.Load(v.Reader(), verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Check(); len(p) > 0 {
			t.Errorf("problems: %v", p)
		}
	}
	look("one")
	if err := s.NoteDamage(ctx, "one", hot.Differs); err != nil {
		t.Fatal(err)
	}
	look("one")
	v := s.View()
	d, err := v.Damage("one")
	v.Close()
	if err != nil || d != hot.Differs {
		t.Errorf("damage is %v, %v", d, err)
	}
	if err := errors.Join(s.NoteDamage(ctx, "one", 0), s.Evict(ctx, id, 1)); err != nil {
		t.Fatal(err)
	}
	look()
}

// How far the reading of all objects is changes all the time: an idle server makes no
// copies of it, and a base has none either.
func TestCopiesHaveNoMark(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	inObject(t, s, "a", "one")
	s.TrackChanges()
	s.BeginCopy(true).End(true)
	if err := errors.Join(s.SetMark(ctx, hot.Mark{Began: 1}), s.NoteDamage(ctx, "one", hot.Missing)); err != nil {
		t.Fatal(err)
	}
	if s.Changed() {
		t.Error("a copy is due")
	}
	c := s.BeginCopy(true)
	defer c.End(true)
	if n := entries(t, c); n["1e"] != 0 || n["1o"] != 1 || n["1g"] != 1 {
		t.Errorf("a base takes %v", n)
	}
}
