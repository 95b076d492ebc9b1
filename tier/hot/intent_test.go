package hot_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/tier/hot"
)

// TestProlong: an intent gets its whole grace again when less than half is left, durably.
func TestProlong(t *testing.T) {
	const whole = time.Hour // the default
	ctx := context.Background()
	for _, c := range []struct {
		name      string
		after     time.Duration
		prolonged bool
	}{
		{"at half of the grace", whole / 2, false},
		{"a moment later", whole/2 + time.Millisecond, true},
		{"at the end", whole, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock, fs := newClock(), vfs.NewCrashableMem()
			s := lived(t, fs, clock)
			defer s.Close()
			if err := s.Intend(ctx, "o"); err != nil {
				t.Fatal(err)
			}
			end := clock.Now().Add(whole)
			clock.advance(c.after)
			if err := s.Prolong(ctx, "o"); err != nil {
				t.Fatal(err)
			}
			if c.prolonged {
				end = clock.Now().Add(whole)
			}
			again := lived(t, fs.CrashClone(vfs.CrashCloneCfg{}), clock)
			defer again.Close()
			for _, s := range []*hot.Store{s, again} {
				for at, want := range map[time.Time]int{end.Add(-time.Millisecond): 0, end: 1} {
					v := s.View()
					due, err := v.Due(uint64(at.UnixMilli()), 10)
					v.Close()
					if err != nil || len(due) != want {
						t.Errorf("at %v: %d intents are due, %v; want %d", at, len(due), err, want)
					}
				}
			}
		})
	}
	t.Run("given up", func(t *testing.T) {
		s := lived(t, vfs.NewMem(), newClock())
		defer s.Close()
		if err := s.Intend(ctx, "o"); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"retired", func() error { return s.Abandon(ctx, "o") }},
			{"unknown", func() error { return s.Forget(ctx, []string{"o"}) }},
		} {
			if err := step.do(); err != nil {
				t.Fatal(err)
			}
			if err := s.Prolong(ctx, "o"); !errors.Is(err, hot.ErrConflict) {
				t.Errorf("%s: %v, want %v", step.what, err, hot.ErrConflict)
			}
		}
	})
}
