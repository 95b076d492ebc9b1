package hot

import (
	"container/heap"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"firn/pkg/stream"
)

// uses remembers, in memory, when streams with a sliding lifetime were last used
// and by how many live readers they are held. It only ever makes a life shorter
// than the persisted deadline says, or holds it open while a reader is connected.
type uses struct {
	mu   sync.Mutex
	last map[stream.ID]*use
	held map[stream.ID]*use // those with readers
	ends ends               // all others
}

type use struct {
	id      stream.ID
	at      uint64 // ms
	ttl     uint64 // ms
	holds   int
	pending bool // a Touch is queued

	end   uint64 // ms; at+ttl or less: a use does not put it in order again
	index int    // in ends
}

func newUses() *uses {
	return &uses{last: make(map[stream.ID]*use), held: make(map[stream.ID]*use)}
}

// expired reports whether a stream's lifetime is over at now (ms).
func (u *uses) expired(r *Record, now uint64) bool {
	switch {
	case r.Deadline == 0:
		return false
	case !r.Lifetime.Sliding:
		return r.Deadline <= now
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.over(r, now)
}

func (u *uses) over(r *Record, now uint64) bool {
	l := u.last[r.ID]
	if l == nil {
		return r.Deadline <= now
	}
	return l.holds == 0 && max(l.at, r.LastWrite)+r.Lifetime.TTL*1000 <= now
}

// renew notes a use. It reports whether a Touch is due, and whether the lead is used
// up, so that this use must not be forgotten in a crash.
func (u *uses) renew(r *Record, now uint64) (due, urgent bool) {
	if !r.Lifetime.Sliding {
		return false, false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.use(r)
	l.at = max(l.at, now)
	switch {
	case r.Deadline < now+r.Lifetime.TTL*1000:
		return true, true
	case l.pending || !stale(r, now):
		return false, false
	}
	l.pending = true
	return true, false
}

func (u *uses) use(r *Record) *use {
	l := u.last[r.ID]
	if l == nil {
		l = &use{id: r.ID, ttl: r.Lifetime.TTL * 1000}
		u.last[r.ID] = l
		heap.Push(&u.ends, l)
	}
	return l
}

func (u *uses) hold(r *Record, now uint64, n int) {
	if !r.Lifetime.Sliding {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.use(r)
	was := l.holds
	l.holds += n
	l.at = max(l.at, now)
	switch {
	case was == 0:
		heap.Remove(&u.ends, l.index)
		u.held[l.id] = l
	case l.holds == 0:
		delete(u.held, l.id)
		l.end = l.at + l.ttl
		heap.Push(&u.ends, l)
	}
}

// forget drops the streams that are gone, and lets touched ones be touched again.
func (u *uses) forget(changes []change) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.last) == 0 {
		return
	}
	for _, c := range changes {
		switch l := u.last[c.id]; {
		case l == nil:
		case c.rec == nil && l.holds == 0:
			u.remove(l)
		default:
			l.pending = false
		}
	}
}

// drop forgets a stream that was gone when its last reader let it go.
func (u *uses) drop(id stream.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.last[id]; l != nil && l.holds == 0 {
		u.remove(l)
	}
}

func (u *uses) remove(l *use) {
	delete(u.last, l.id)
	heap.Remove(&u.ends, l.index)
}

// idle returns at most limit streams that were not used for their TTL, as far as
// memory knows: a write may have been later. Its time does not grow with the number of
// streams that are in use.
func (u *uses) idle(now uint64, limit int) []stream.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	var over []*use
	for len(u.ends) > 0 && u.ends[0].end <= now && len(over) < limit {
		l := u.ends[0]
		if end := l.at + l.ttl; end > now {
			l.end = end
			heap.Fix(&u.ends, 0)
			continue
		}
		over = append(over, heap.Pop(&u.ends).(*use))
	}
	ids := make([]stream.ID, len(over))
	for i, l := range over {
		ids[i] = l.id
		heap.Push(&u.ends, l)
	}
	return ids
}

// wrote notes the last write of a stream that idle has returned, so that it is not
// looked at again before its time.
func (u *uses) wrote(r *Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.last[r.ID]; l != nil {
		l.at = max(l.at, r.LastWrite)
	}
}

// readers returns the streams with connected readers.
func (u *uses) readers() []stream.ID {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.held))
}

// ends is a heap of uses, the one that may end first at its root.
type ends []*use

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].end < e[j].end }

func (e ends) Swap(i, j int) {
	e[i], e[j] = e[j], e[i]
	e[i].index, e[j].index = i, j
}

func (e *ends) Push(x any) {
	l := x.(*use)
	l.index = len(*e)
	*e = append(*e, l)
}

func (e *ends) Pop() any {
	last := len(*e) - 1
	l := (*e)[last]
	(*e)[last] = nil
	*e = (*e)[:last]
	return l
}

// Expired reports whether the stream's lifetime is over.
func (s *Store) Expired(r *Record) bool { return s.uses.expired(r, s.now()) }

// Revive writes a new deadline for a stream that is not expired although the one on
// disk has passed: a reader holds it, or did until a moment ago, and the process stood
// still for longer than the lead. Commands would find it expired. It is no use of the
// stream, whose life ends when memory says so.
func (s *Store) Revive(r *Record) {
	if r.Lifetime.Sliding && r.Deadline != 0 && r.Deadline <= s.now() {
		// An error says that the stream or the store is gone; so will the next command.
		_, _ = s.propose(context.Background(), Touch{ID: r.ID})
	}
}

// Renew notes that a stream is used. The renewal is written when it is due. Renew
// waits for that only when a crash would shorten the stream's life otherwise: when it
// was not used for longer than the lead. The stream must not be expired.
func (s *Store) Renew(r *Record) {
	due, urgent := s.uses.renew(r, s.now())
	if !due {
		return
	}
	if urgent {
		// An error says that the stream or the store is gone; so is what it was for.
		_, _ = s.propose(context.Background(), Touch{ID: r.ID})
		return
	}
	req := &request{command: Touch{ID: r.ID}, now: s.now(), done: make(chan struct{}, 1)}
	select {
	case s.queue <- req:
	default:
		// Half of the lead is left: the next use tries again.
		s.uses.forget([]change{{id: r.ID, rec: r}})
	}
}

// Hold keeps a stream with a sliding lifetime alive until the returned function
// is called, once.
func (s *Store) Hold(r *Record) (release func()) {
	s.uses.hold(r, s.now(), +1)
	return func() { s.uses.hold(r, s.now(), -1) }
}

// expiryPage bounds how many streams one step of the expiry looks at.
const expiryPage = 1000

// ExpireDue removes the streams whose lifetime is over.
func (s *Store) ExpireDue(ctx context.Context) error {
	v := s.View()
	ids, err := v.due(s.now(), expiryPage)
	if err != nil {
		v.Close()
		return err
	}
	ids = append(ids, s.uses.idle(s.now(), expiryPage)...)
	over := ids[:0]
	for _, id := range ids {
		rec, err := v.Incarnation(id)
		switch {
		case errors.Is(err, stream.ErrNotFound):
			s.uses.drop(id)
		case err != nil || rec.Deleted:
		case s.Expired(rec):
			over = append(over, id)
		default:
			s.uses.wrote(rec)
		}
	}
	v.Close()
	var damaged error // keeps no other stream
	for _, id := range over {
		if err := s.Expire(ctx, id); errors.Is(err, ErrDamaged) {
			damaged = err
		} else if err != nil {
			return err
		}
	}
	return damaged
}

// renewHeld persists the deadlines of streams with connected readers.
func (s *Store) renewHeld() {
	held := s.uses.readers()
	if len(held) == 0 {
		return
	}
	v := s.View()
	defer v.Close()
	for _, id := range held {
		if rec, err := v.Incarnation(id); err == nil && !rec.Deleted {
			s.Renew(rec)
		}
	}
}

// watchInterval is how often lifetimes and free space are looked at. No request
// waits for it: streams expire on access too.
const watchInterval = 500 * time.Millisecond

func (s *Store) watch(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	failing := false
	for {
		s.watchSpace()
		s.renewHeld()
		err := s.ExpireDue(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			s.log.Warn("cannot expire streams", "err", err)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
