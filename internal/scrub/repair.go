package scrub

import (
	"context"
	"time"

	"firn/tier/hot"
)

const (
	// repairPause is between two repairs at least: many damaged objects share them.
	repairPause = 10 * time.Second
	// longRepairPause bounds the pause after failures, which doubles with each.
	longRepairPause = 10 * time.Minute
)

// mend is when hot copies are looked for next.
type mend struct {
	due      time.Time // zero: there is nothing new
	last     time.Time
	failures int
}

// want asks for a repair soon.
func (m *mend) want(now time.Time) {
	if m.due.IsZero() {
		m.due = now
		if next := m.last.Add(repairPause); next.After(now) {
			m.due = next
		}
	}
}

// repair has what is damaged written again, as far as there are hot copies. Where there
// is none there will never be one, so it is tried once for each news.
func (s *Scrubber) repair(ctx context.Context, now time.Time) (bool, error) {
	m := &s.mend
	if m.due.IsZero() || now.Before(m.due) {
		return false, nil
	}
	m.due, m.last = time.Time{}, now
	n, err := s.opts.Compactor.Repair(ctx)
	if ctx.Err() != nil {
		return true, ctx.Err()
	}
	if err != nil {
		if m.failures == 0 {
			s.log.Warn("cannot repair damaged objects, trying again", "err", err)
		}
		m.due = now.Add(min(repairPause<<min(m.failures, 16), longRepairPause))
		m.failures++
	} else {
		m.failures = 0
	}
	if n == 0 {
		return true, nil
	}
	if m.due.IsZero() {
		m.due = now.Add(repairPause) // there may be more
	}
	return true, s.settle(ctx)
}

// settle forgets damaged objects that nothing names any more.
func (s *Scrubber) settle(ctx context.Context) error {
	return eachDamaged(s.hot, func(d hot.Damaged, live bool) error {
		if live {
			return nil
		}
		return s.note(ctx, d.Object, finding{verdict: gone})
	})
}
