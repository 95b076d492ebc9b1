package scrub

import (
	"context"
	"errors"
	"sync"
	"time"

	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	// recheckEvery is the time between two looks at what is damaged.
	recheckEvery = time.Hour
	// recheckPage bounds how many objects one of them takes.
	recheckPage = 1000
	// damagedPage is how many are read of the catalog at a time.
	damagedPage = 256
)

// Status counts the objects that streams name and that are known to be damaged.
type Status struct {
	// Missing are those that the store does not have, Corrupt those of another size or
	// that fail their checks, Different those that are not what the catalog means.
	Missing, Corrupt, Different int
}

// Objects counts all of them.
func (s Status) Objects() int { return s.Missing + s.Corrupt + s.Different }

// Status tells what is damaged. The catalog has which objects that are.
func (s *Scrubber) Status() Status { return s.known.status() }

// Recheck has everything that is known to be damaged looked at now: it may have been
// put back.
func (s *Scrubber) Recheck() {
	s.recheck.Store(true)
	s.suspects.ring()
}

// known counts what the catalog has.
type known struct {
	mu      sync.Mutex // guards what follows
	metrics *metrics
	counts  map[hot.Damage]int
}

func (k *known) load(h *hot.Store, m *metrics) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.metrics, k.counts = m, make(map[hot.Damage]int)
	err := eachDamaged(h, func(d hot.Damaged, _ bool) error {
		k.counts[d.Damage]++
		return nil
	})
	k.show()
	return err
}

// change counts an object whose damage was another, 0 for none.
func (k *known) change(was, is hot.Damage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.counts[was]--
	k.counts[is]++
	k.show()
}

func (k *known) show() {
	for _, d := range hot.Damages {
		k.metrics.damaged.WithLabelValues(d.String()).Set(float64(k.counts[d]))
	}
}

func (k *known) status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return Status{Missing: k.counts[hot.Missing], Corrupt: k.counts[hot.Corrupt], Different: k.counts[hot.Differs]}
}

// eachDamaged calls fn for each damaged object and whether it is still needed. No view
// is open during the call.
func eachDamaged(h *hot.Store, fn func(d hot.Damaged, live bool) error) error {
	after := ""
	for {
		v := h.View()
		list, err := v.Damaged(after, damagedPage)
		live := make([]bool, len(list))
		for i := 0; i < len(list) && err == nil; i++ {
			_, live[i], err = v.LiveObject(list[i].Object)
		}
		v.Close()
		if err != nil {
			return err
		}
		for i, d := range list {
			if err := fn(d, live[i]); err != nil {
				return err
			}
		}
		if len(list) < damagedPage {
			return nil
		}
		after = list[len(list)-1].Object
	}
}

// damage is what is known to be wrong with an object.
func (s *Scrubber) damage(key string) (hot.Damage, error) {
	v := s.hot.View()
	defer v.Close()
	return v.Damage(key)
}

// note compares what was found of an object with what is known of it. What is damaged
// is logged when that is news.
func (s *Scrubber) note(ctx context.Context, key string, f finding) error {
	was, err := s.damage(key)
	if err != nil || was == f.damage {
		return err
	}
	err = s.hot.NoteDamage(ctx, key, f.damage)
	if errors.Is(err, hot.ErrConflict) {
		return nil // nothing names it any more
	}
	if err != nil {
		return err
	}
	s.known.change(was, f.damage)
	switch {
	case f.damage == 0 && f.verdict == gone:
		s.log.Info("damaged object is not needed any more", "key", key)
	case f.damage == 0:
		s.log.Info("damaged object is whole again", "key", key)
	default:
		s.log.Error("object is damaged", "key", key, "damage", f.damage.String(), "stream", s.name(key), "err", f.reason)
		s.mend.want(s.opts.Now())
	}
	return nil
}

// name is that of the stream that an object was written for, "" if it was for several.
func (s *Scrubber) name(key string) string {
	id, ok := cold.StreamOf(key)
	if !ok {
		return ""
	}
	v := s.hot.View()
	defer v.Close()
	rec, err := v.Peek(id)
	if err != nil {
		return id.String()
	}
	return rec.Name.String()
}

// walk goes over what is damaged.
type walk struct {
	due   time.Time
	after string // it has come so far
	left  int    // objects of this time
}

// lookAtDamaged looks at the next object of what is damaged. One reading is enough.
func (s *Scrubber) lookAtDamaged(ctx context.Context, now time.Time) (bool, error) {
	w := &s.walk
	if s.recheck.Swap(false) {
		w.due, w.after, w.left = now, "", 0
	}
	if now.Before(w.due) {
		return false, nil
	}
	if w.left == 0 {
		w.left = recheckPage
	}
	v := s.hot.View()
	list, err := v.Damaged(w.after, 1)
	v.Close()
	if err != nil {
		return false, err
	}
	if w.left--; len(list) == 0 || w.left == 0 {
		w.due, w.left = now.Add(recheckEvery), 0
	}
	if len(list) == 0 {
		w.after = ""
		return true, nil
	}
	w.after = list[0].Object
	_, err = s.look(ctx, w.after, 1)
	return true, err
}
