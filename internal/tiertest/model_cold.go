package tiertest

import (
	"slices"

	"firn/pkg/segment"
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
	n := c.op.To - c.op.From
	m.objects[c.object] = object{state: hot.Live, live: n, size: uint64(len(c.sealed.Bytes)), content: n}
	m.extend(c.op.Stream, c.sealed.Refs[0])
	return nil
}

func (m *model) extend(n int, r segment.Ref) {
	e := m.edit(n)
	e.segments = append(slices.Clip(e.segments), r)
	e.sealed = r.To
	e.merge = e.merge || e.run(m.target)
}

// pack names ranges of several streams, or puts them in the place of older segments.
func (m *model) pack(c *call) outcome {
	obj := m.objects[c.object]
	if obj.state != hot.Intended && obj.state != hot.Live {
		return outcome{err: hot.ErrConflict}
	}
	var o outcome
	named := uint64(0)
	for i, p := range c.op.named() {
		e, r := m.streams[p.Stream], c.sealed.Refs[int(c.op.From)+i]
		ok := e != nil && !e.gone
		switch {
		case !ok:
		case c.op.Do == "pack":
			if ok = e.sealed == p.From && p.To <= e.tail(); ok {
				m.extend(p.Stream, r)
			}
		default:
			ok = m.replace(p, c.was[i], r)
		}
		if !ok {
			o.passed = append(o.passed, c.ids[i])
			continue
		}
		named += p.To - p.From
	}
	if named == 0 {
		return outcome{err: hot.ErrConflict}
	}
	obj = m.objects[c.object]
	obj.state, obj.live, obj.due = hot.Live, obj.live+named, 0
	obj.size, obj.content = uint64(len(c.sealed.Bytes)), 0
	for _, p := range c.op.Parts {
		obj.content += p.To - p.From
	}
	m.objects[c.object] = obj
	return o
}

func (m *model) replace(p Part, was []segment.Ref, r segment.Ref) bool {
	e := m.streams[p.Stream]
	i := slices.IndexFunc(e.segments, func(s segment.Ref) bool { return s.From == p.From })
	if i < 0 || len(was) == 0 || i+len(was) > len(e.segments) || was[0].To <= e.floor {
		return false
	}
	for k, w := range was {
		if s := e.segments[i+k]; s.From != w.From || s.To != w.To || s.Object != w.Object || s.Object == r.Object {
			return false
		}
	}
	e = m.edit(p.Stream)
	for _, w := range was {
		m.drop(w.Object, w.To-w.From, m.grace)
	}
	e.segments = slices.Concat(e.segments[:i], []segment.Ref{r}, e.segments[i+len(was):])
	e.merge = e.run(m.target)
	return true
}

// run reports whether the last segments, from the end backwards to one of half the
// target, come to have 8 of the largest class met: powers of 8.
func (e *entity) run(target uint64) bool {
	largest, count := uint64(0), 0
	for k, s := range slices.Backward(e.segments) {
		size := s.To - s.From
		if size >= target/2 || s.To <= e.floor || len(e.segments)-k > 64 {
			return false
		}
		class := uint64(1)
		for class*8 <= size {
			class *= 8
		}
		switch {
		case class > largest:
			largest, count = class, 1
		case class == largest:
			count++
		}
		if count == 8 {
			return true
		}
	}
	return false
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
		done.Next = s.To
	}
	done.Done = done.Segments < o.Size
	return done
}

func (m *model) drop(name string, n, grace uint64) {
	o := m.objects[name]
	until := uint64(never)
	if grace != never {
		until = m.now + grace
	}
	o.keep = max(o.keep, until)
	if o.live -= n; o.live == 0 {
		o.state = hot.Retired
		if o.keep != never {
			o.due = o.keep
		}
		o.keep = 0
	}
	m.objects[name] = o
}
