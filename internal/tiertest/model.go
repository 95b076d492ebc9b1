package tiertest

import (
	"bytes"
	"maps"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// never is the position that no stream reaches.
const never = ^uint64(0)

// limits are the settings that decide outcomes.
type limits struct {
	producers                       int
	grace, intentGrace, keepHistory uint64 // ms; keepHistory may be never
	target                          uint64 // bytes
}

// model is what a store holds, by the rules. What its maps point to is not changed
// but replaced, so a clone is cheap.
type model struct {
	limits
	now     uint64 // ms
	life    uint64
	buckets map[string]uint64 // created, ms
	names   map[stream.Name]int
	streams map[int]*entity // gone ones too, for their segments
	objects map[string]object
}

// entity is one incarnation.
type entity struct {
	id                       stream.ID
	name                     stream.Name
	life                     uint64
	contentType              string
	json                     bool
	created, written         uint64
	lifetime, asked          stream.Lifetime
	deadline                 uint64
	closed                   bool
	closer                   *stream.Producer
	deleted, gone            bool
	seq                      *string
	producers                map[string]stream.ProducerState
	base, floor, cut, sealed uint64
	earliest                 uint64
	content                  []byte // from position 0 on, inherited bytes too
	fork                     *fork
	snapshot                 *hot.Snapshot
	segments                 []segment.Ref
	merge                    bool // it is in the index of streams to merge
}

type fork struct {
	source    int
	from      stream.Name
	anchor    uint64
	subOffset uint64
}

type object struct {
	state           hot.ObjectState
	live, size, due uint64
	content, keep   uint64
}

func newModel(l limits, now uint64) *model {
	return &model{
		limits: l, now: now,
		buckets: map[string]uint64{stream.DefaultBucket: now},
		names:   make(map[stream.Name]int),
		streams: make(map[int]*entity),
		objects: make(map[string]object),
	}
}

func (m *model) clone() *model {
	c := *m
	c.buckets, c.names = maps.Clone(m.buckets), maps.Clone(m.names)
	c.streams, c.objects = maps.Clone(m.streams), maps.Clone(m.objects)
	return &c
}

// edit returns a copy of an entity that is this model's own.
func (m *model) edit(n int) *entity {
	c := *m.streams[n]
	m.streams[n] = &c
	return &c
}

func (e *entity) tail() uint64 { return uint64(len(e.content)) }

func (e *entity) offset(pos uint64) stream.Offset {
	return stream.Offset{Life: e.life, Position: pos}
}

// boundary reports whether a reader may begin at pos.
func (e *entity) boundary(pos uint64) bool {
	return !e.json || pos == 0 || e.content[pos-1] == '\n'
}

// boundaryAfter returns the first boundary at or after pos.
func (e *entity) boundaryAfter(pos uint64) uint64 {
	if e.boundary(pos) {
		return pos
	}
	return pos + uint64(bytes.IndexByte(e.content[pos:], '\n')) + 1
}

// forks returns the direct forks of a stream that exist.
func (m *model) forks(n int) []int {
	var list []int
	for i, e := range m.streams {
		if !e.gone && e.fork != nil && e.fork.source == n {
			list = append(list, i)
		}
	}
	return list
}

// need is the lowest position that the readers of a stream or of any fork below it
// may ask for.
func (m *model) need(n int) uint64 {
	e := m.streams[n]
	need := uint64(never)
	if !e.deleted && !e.gone {
		need = e.earliest
	}
	for _, f := range m.forks(n) {
		if want := m.need(f); want < m.streams[f].base {
			need = min(need, want)
		}
	}
	return need
}

// settle lets the marks of all streams follow what is needed.
func (m *model) settle() {
	for n, e := range m.streams {
		if e.gone {
			continue
		}
		if floor := min(m.need(n), e.tail()); floor > e.floor {
			e = m.edit(n)
			e.floor, e.cut, e.sealed = floor, max(e.cut, floor), max(e.sealed, floor)
		}
	}
}

// visible is the stream for a client.
func (m *model) visible(n int) error {
	e := m.streams[n]
	switch {
	case e == nil || e.gone || e.deadline != 0 && e.deadline <= m.now:
		return stream.ErrNotFound
	case e.deleted:
		return stream.ErrGone
	}
	return nil
}

// lead is in ms; see docs/protocol.md on lifetimes.
func lead(ttl uint64) uint64 { return max(ttl*1000/8, 1000) }

func deadline(l stream.Lifetime, now uint64) uint64 {
	switch {
	case l.Sliding && l.TTL == 0:
		return now
	case l.Sliding:
		return now + l.TTL*1000 + lead(l.TTL)
	case !l.At.IsZero():
		return uint64(l.At.UnixMilli())
	}
	return 0
}

func (m *model) renew(e *entity) {
	if l := e.lifetime; l.Sliding && l.TTL > 0 && e.deadline < m.now+l.TTL*1000+lead(l.TTL)/2 {
		e.deadline = deadline(l, m.now)
	}
}
