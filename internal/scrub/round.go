package scrub

import (
	"context"
	"time"

	"firn/tier/hot"
)

const (
	// objectCost is what an object counts beside its bytes, so that many small ones do
	// not become many requests at a time.
	objectCost = 64 << 10
	// planEvery is how often the pace is made anew: streams grow during a round.
	planEvery = time.Hour
	// saveEvery is the time between two commits of how far a round is.
	saveEvery = time.Minute
	// planPage is how many objects are summed up under one view.
	planPage = 4096
)

// round is the walk over all live objects.
type round struct {
	began time.Time // or is to begin
	after string    // the last object that was looked at
	// skipped: an earlier process left out an object of this round.
	skipped bool
	wholeMs uint64

	dirty bool
	saved time.Time

	objects int       // that were looked at by this process
	next    time.Time // when the next one is due
	pace    float64   // cost a second
	planned time.Time // zero: not yet
}

// roundDue is when the next object of the round is, zero if that is not known.
func (s *Scrubber) roundDue() time.Time {
	switch r := &s.round; {
	case s.opts.Period < 0 || len(s.later) >= maxLater:
		return time.Time{}
	case r.next.After(r.began):
		return r.next
	default:
		return r.began
	}
}

// loadRound goes on with the round of an earlier process.
func (s *Scrubber) loadRound(ctx context.Context, now time.Time) error {
	if s.opts.Period < 0 {
		return nil
	}
	v := s.hot.View()
	m, err := v.Mark()
	v.Close()
	if err != nil {
		return err
	}
	r := &s.round
	r.after, r.skipped, r.saved = m.Object, m.Skipped, now
	r.began, r.wholeMs = time.UnixMilli(int64(m.Began)), m.Whole
	if m.Began == 0 {
		r.began, r.wholeMs, r.dirty = now, uint64(now.UnixMilli()), true
	}
	if latest := now.Add(s.opts.Period); r.began.After(latest) {
		r.began, r.dirty = latest, true // the period was longer
	}
	s.wholeMs.Store(r.wholeMs)
	return nil
}

// unread is the time since the last whole round began.
func (s *Scrubber) unread() time.Duration {
	ms := s.wholeMs.Load()
	if ms == 0 {
		return 0
	}
	return s.opts.Now().Sub(time.UnixMilli(int64(ms)))
}

// idle says that nothing is to be done for a while. What the round has come to is saved
// first, if it is time or will be before it ends.
func (s *Scrubber) idle(ctx context.Context, d time.Duration) (time.Duration, error) {
	if s.opts.Now().Add(d).Sub(s.round.saved) < saveEvery {
		return d, nil
	}
	return d, s.save(ctx)
}

// save commits how far the round is.
func (s *Scrubber) save(ctx context.Context) error {
	r := &s.round
	if !r.dirty || s.opts.Period < 0 {
		return nil
	}
	r.saved = s.opts.Now()
	err := s.hot.SetMark(ctx, hot.Mark{
		Object: r.after, Began: uint64(r.began.UnixMilli()), Skipped: r.skipped || len(s.later) > 0, Whole: r.wholeMs,
	})
	r.dirty = err != nil
	return err
}

// goOn looks at the next object of the round, if it is due.
func (s *Scrubber) goOn(ctx context.Context, now time.Time) (bool, error) {
	r := &s.round
	if due := s.roundDue(); due.IsZero() || now.Before(due) {
		return false, nil
	}
	if now.Sub(r.planned) >= planEvery {
		if err := s.plan(now); err != nil {
			return false, err
		}
	}
	o, ok, err := s.nextObject()
	if err != nil {
		return false, err
	}
	if !ok {
		return true, s.endRound(ctx, now)
	}
	if _, err := s.look(ctx, o.Key, attempts); err != nil {
		return false, err
	}
	r.after, r.dirty = o.Key, true
	r.objects++
	if r.next.Before(now) {
		r.next = now
	}
	r.next = r.next.Add(time.Duration(cost(o) / r.pace * float64(time.Second)))
	if s.opts.Now().Sub(r.saved) >= saveEvery {
		return true, s.save(ctx)
	}
	return true, nil
}

func (s *Scrubber) nextObject() (o hot.LiveObject, ok bool, err error) {
	v := s.hot.View()
	defer v.Close()
	err = v.LiveObjects(s.round.after, func(l hot.LiveObject) bool {
		o, ok = l, true
		return false
	})
	return o, ok, err
}

func cost(o hot.LiveObject) float64 { return float64(o.Size) + objectCost }

// plan sets the pace so that what is left takes what is left of the period, but for a
// tenth that is kept for trouble.
func (s *Scrubber) plan(now time.Time) error {
	r := &s.round
	left, after := 0.0, r.after
	for n := planPage; n == planPage; {
		n = 0
		v := s.hot.View()
		err := v.LiveObjects(after, func(o hot.LiveObject) bool {
			left += cost(o)
			after = o.Key
			n++
			return n < planPage
		})
		v.Close()
		if err != nil {
			return err
		}
	}
	seconds := max(r.began.Add(s.opts.Period/10*9).Sub(now).Seconds(), 1)
	r.pace = min(max(left/seconds, 1), float64(s.opts.Rate))
	r.planned = now
	return nil
}

// endRound begins the next round, one period after this one began.
func (s *Scrubber) endRound(ctx context.Context, now time.Time) error {
	r := &s.round
	whole := !r.skipped && len(s.later) == 0
	if whole {
		r.wholeMs = uint64(r.began.UnixMilli())
		s.wholeMs.Store(r.wholeMs)
	}
	took := now.Sub(r.began)
	s.log.Info("all objects have been read again", "took", took, "objects", r.objects, "whole", whole)
	began := r.began.Add(s.opts.Period)
	if began.Before(now) {
		s.log.Warn("reading all objects again took longer than scrub.period: raise scrub.rate", "took", took)
		began = now
	}
	*r = round{began: began, wholeMs: r.wholeMs, dirty: true, saved: r.saved}
	return s.save(ctx)
}
