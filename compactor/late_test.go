package compactor_test

import (
	"testing"
	"time"

	"firn/compactor"
	"firn/tier/hot"
)

// TestUploadLongAfterItsIntent: an object is written only while the catalog knows it, and
// an intent that is about to end is prolonged.
func TestUploadLongAfterItsIntent(t *testing.T) {
	content := letters(150)
	for _, c := range []struct {
		name string
		wait []time.Duration // each with a sweep after it
		gone bool
	}{
		{"at once", nil, false},
		{"before half of the grace", []time.Duration{grace / 2}, false},
		{"just before the end", []time.Duration{grace - time.Millisecond}, false},
		{"after the end, before it is removed", []time.Duration{grace}, true},
		{"long after it was removed", []time.Duration{grace, grace, grace}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
			id := r.create("a", content)
			s := r.build(r.Compactor, id)
			defer s.Release()
			r.must(s.Intend(bg))
			for _, d := range c.wait {
				r.wait(d)
			}
			err := s.Upload(bg)
			if c.gone {
				r.is(err, hot.ErrConflict, "upload")
				r.must(s.Abandon(bg))
				r.count(0, "given up")
				r.marks("a", 0, 0, 150)
				return
			}
			r.must(err)
			// It has half the grace at least, and is removed a grace after that.
			r.wait(grace/2 - time.Millisecond)
			r.must(s.Commit(bg))
			r.wait(3 * grace)
			r.count(1, "named")
			r.marks("a", 0, 150, 150)
		})
	}
	t.Run("written and not named", func(t *testing.T) {
		r := newRig(t, setup{policy: compactor.Policy{Target: 1000}})
		s := r.build(r.Compactor, r.create("a", content))
		defer s.Release()
		r.must(s.Intend(bg))
		r.wait(grace - time.Millisecond)
		r.must(s.Upload(bg))
		r.wait(grace - time.Millisecond)
		r.count(1, "before the prolonged intent ends")
		r.wait(time.Millisecond)
		r.wait(grace)
		r.count(0, "after all graces")
	})
}
