package tiertest

import (
	"slices"

	"firn/pkg/stream"
	"firn/tier/hot"
)

func (m *model) publish(c *call) error {
	if err := m.visible(c.op.Stream); err != nil {
		return err
	}
	e := m.streams[c.op.Stream]
	switch {
	case c.op.At < e.earliest:
		return &stream.TrimmedError{Earliest: e.offset(e.earliest)}
	case c.op.At > e.tail():
		return stream.ErrSnapshotPastTail
	case m.objects[c.object].state != hot.Intended:
		return hot.ErrConflict
	}
	s := c.snapshot()
	m.objects[c.object] = object{state: hot.Live, live: 1, size: uint64(s.Size)}
	e = m.edit(c.op.Stream)
	m.hideSnapshot(e)
	e.snapshot, e.earliest = &s, s.Position
	return nil
}

func (m *model) seal(c *call) error {
	e := m.streams[c.op.Stream]
	if e == nil || e.gone || e.sealed != c.op.From || c.op.To > e.tail() || m.objects[c.object].state != hot.Intended {
		return hot.ErrConflict
	}
	m.objects[c.object] = object{state: hot.Live, live: c.op.To - c.op.From, size: uint64(len(c.sealed.Bytes))}
	e = m.edit(c.op.Stream)
	e.segments = append(slices.Clip(e.segments), c.sealed.Refs[0])
	e.sealed = c.op.To
	return nil
}

func (m *model) evict(o Op) error {
	e := m.streams[o.Stream]
	if e == nil || e.gone || o.At > e.sealed {
		return hot.ErrConflict
	}
	e = m.edit(o.Stream)
	e.cut = max(e.cut, o.At)
	return nil
}

func (m *model) trim(o Op) hot.TrimResult {
	e := m.streams[o.Stream]
	if e == nil {
		return hot.TrimResult{Done: true}
	}
	floor, grace := uint64(never), m.grace
	if !e.gone {
		floor, grace = e.floor, max(m.keepHistory, m.grace)
	}
	e = m.edit(o.Stream)
	var done hot.TrimResult
	for done.Segments < o.Size && len(e.segments) > 0 && e.segments[0].To <= floor {
		s := e.segments[0]
		e.segments = e.segments[1:]
		m.drop(s.Object, s.To-s.From, grace)
		done.Segments++
	}
	done.Done = done.Segments < o.Size
	return done
}

func (m *model) drop(name string, n, grace uint64) {
	o := m.objects[name]
	if o.live -= n; o.live == 0 {
		o.state = hot.Retired
		if grace != never {
			o.due = m.now + grace
		}
	}
	m.objects[name] = o
}
