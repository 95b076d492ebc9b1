package sim

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"firn/pkg/stream"
)

// model is what the store holds, by the rules. A life is copied before it is changed,
// so that a clone of the model is a state to go back to.
type model struct {
	now     uint64 // ms
	page    uint64
	buckets map[string]bool
	names   map[stream.Name]*life
	forks   map[stream.ID]int // of lives that exist
}

// life is one incarnation.
type life struct {
	id             stream.ID
	offsets        uint64 // the first half of its offsets
	name           stream.Name
	json, closed   bool
	closer         *stream.Producer
	seq            *string
	producers      map[string]stream.ProducerState
	lifetime       stream.Lifetime
	asked          stream.Lifetime
	asleep, dead   uint64 // it is alive before the one and dead from the other on, ms; 0: for ever
	content        []byte // from position 0 on, inherited bytes too
	base, earliest uint64
	source         *life // as it was
	from           stream.Name
	anchor, sub    uint64
	snapshot       *snapshot
	deleted        bool // but forks need it
}

type snapshot struct {
	pos  uint64
	blob []byte
}

func newModel(now uint64, page int) *model {
	return &model{
		now: now, page: uint64(page),
		buckets: map[string]bool{stream.DefaultBucket: true},
		names:   make(map[stream.Name]*life),
		forks:   make(map[stream.ID]int),
	}
}

func (m *model) clone() *model {
	c := *m
	c.buckets, c.names, c.forks = maps.Clone(m.buckets), maps.Clone(m.names), maps.Clone(m.forks)
	return &c
}

func (s *life) tail() uint64 { return uint64(len(s.content)) }

func (s *life) offset(pos uint64) stream.Offset { return stream.Offset{Life: s.offsets, Position: pos} }

// edit returns a copy of a life that is this model's own.
func (m *model) edit(n stream.Name) *life {
	c := *m.names[n]
	m.names[n] = &c
	return &c
}

// find is what any request about a stream meets first. One whose life is over goes.
func (m *model) find(n stream.Name) (*life, error) {
	s := m.names[n]
	switch {
	case !m.buckets[n.Bucket]:
		return nil, stream.ErrBucketNotFound
	case s == nil:
		return nil, stream.ErrNotFound
	case s.deleted:
		return nil, stream.ErrGone
	case s.over(m.now):
		m.remove(n)
		return nil, stream.ErrNotFound
	}
	return s, nil
}

func (s *life) over(now uint64) bool { return s.dead != 0 && s.dead <= now }

// unsure: only the store knows whether the life is over.
func (s *life) unsure(now uint64) bool {
	return !s.deleted && s.dead != 0 && s.asleep <= now && now < s.dead
}

// use renews a sliding lifetime. What may have been a use makes the end uncertain.
func (m *model) use(n stream.Name, certain bool) {
	s := m.names[n]
	if s == nil || !s.lifetime.Sliding {
		return
	}
	s = m.edit(n)
	end := m.now + s.lifetime.TTL*1000
	s.dead = max(s.dead, end)
	if certain {
		s.asleep, s.dead = end, end
	}
}

// restarted: what memory knew of lifetimes is lost, and what the disk has leads.
func (m *model) restarted() {
	for n, s := range m.names {
		if s.lifetime.Sliding && !s.deleted {
			m.edit(n).dead += max(s.lifetime.TTL*1000/8, 1000)
		}
	}
}

// remove deletes a stream, or hides it while it has forks; sources that were only kept
// for it go with it.
func (m *model) remove(n stream.Name) {
	for {
		s := m.names[n]
		if m.forks[s.id] > 0 {
			s = m.edit(n)
			s.deleted, s.snapshot = true, nil
			return
		}
		delete(m.names, n)
		if s.source == nil {
			return
		}
		m.forks[s.source.id]--
		source := m.names[s.source.name]
		if source == nil || source.id != s.source.id || !source.deleted || m.forks[source.id] > 0 {
			return
		}
		n = source.name
	}
}

// expire removes all streams whose life is over.
func (m *model) expire() {
	for _, n := range m.sorted() {
		if s := m.names[n]; s != nil && !s.deleted && s.over(m.now) {
			m.remove(n)
		}
	}
}

func (m *model) sorted() []stream.Name {
	return slices.SortedFunc(maps.Keys(m.names), func(a, b stream.Name) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
}

// same reports whether an error is the one that was wanted.
func same(got, want error) bool {
	return got == want || reflect.DeepEqual(got, want)
}

func lifetime(s Step, now uint64) stream.Lifetime {
	switch {
	case s.TTL > 0:
		return stream.Lifetime{Sliding: true, TTL: s.TTL}
	case s.For > 0:
		return stream.Lifetime{At: time.UnixMilli(int64(now + s.For*1000)).UTC()}
	}
	return stream.Lifetime{}
}
