package tiertest

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// read returns the positions [from, to) of a stream as a view has them: own bytes
// and those of its sources, hot and cold.
func (r *run) read(v *hot.View, rec *hot.Record, from, to uint64) ([]byte, error) {
	var data []byte
	if from < rec.Base {
		source, err := v.Incarnation(rec.Fork.Source)
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", rec.Fork.Source, err)
		}
		if data, err = r.read(v, source, from, min(to, rec.Base)); err != nil {
			return nil, err
		}
		from = rec.Base
	}
	var err error
	if from < min(to, rec.Cut) {
		if data, err = r.readCold(data, v, rec, from, min(to, rec.Cut)); err != nil {
			return nil, err
		}
		from = rec.Cut
	}
	if from >= to {
		return data, nil
	}
	if from%2 == 0 {
		return v.Data(data, rec.ID, from, to)
	}
	err = v.Values(rec.ID, from, to, func(_ uint64, payload []byte) error {
		data = append(data, payload...)
		return nil
	})
	return data, err
}

func (r *run) readCold(data []byte, v *hot.View, rec *hot.Record, from, to uint64) ([]byte, error) {
	for pos := from; pos < to; {
		ref, err := v.Segment(rec.ID, pos)
		if err != nil {
			return nil, err
		}
		end := min(ref.To, to)
		span, err := ref.Span(pos, end)
		if err != nil {
			return nil, err
		}
		for _, p := range span.Parts {
			frame := r.objects[ref.Object][p.Offset:][:p.Length]
			content, err := r.decoder.DecodeFrame(nil, frame, p.Frame)
			if err != nil {
				return nil, err
			}
			data = append(data, p.Cut(content)...)
		}
		pos = end
	}
	return data, nil
}

// shows compares the model with what a view shows of the streams of the group.
func (g *group) shows(m *model) error {
	v := g.run.store.View()
	defer v.Close()
	if len(g.calls) > 1 {
		// When an object is due tells the order of what dropped it.
		if err := m.due(v); err != nil {
			return err
		}
	}
	for _, c := range g.calls {
		for _, n := range []int{c.op.New, c.op.Stream} {
			if e := m.streams[n]; e != nil {
				if err := m.shown(v, n, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// due compares the queue of objects at each moment at which it changes.
func (m *model) due(v *hot.View) error {
	for _, at := range m.objects {
		if at.due == 0 {
			continue
		}
		list, err := v.Due(at.due, math.MaxInt)
		if err != nil {
			return err
		}
		want := 0
		for _, o := range m.objects {
			if o.due != 0 && o.due <= at.due {
				want++
			}
		}
		if len(list) != want {
			return fmt.Errorf("%d objects are due at %d, want %d", len(list), at.due, want)
		}
		for _, d := range list {
			if o := m.objects[d.Object]; o.state != d.State || o.due == 0 || o.due > at.due {
				return fmt.Errorf("object %s is due at %d in state %d, want %+v", d.Object, at.due, d.State, o)
			}
		}
	}
	return nil
}

func (m *model) shown(v *hot.View, n int, e *entity) error {
	rec, err := v.Incarnation(e.id)
	if e.gone {
		if err != stream.ErrNotFound {
			return fmt.Errorf("stream %d should be gone, view has %+v, %v", n, rec, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("stream %d: %w", n, err)
	}
	marks := hot.Marks{Base: e.base, Floor: e.floor, Cut: e.cut, Sealed: e.sealed, Tail: e.tail()}
	if rec.Marks != marks || rec.Earliest != e.earliest || rec.Closed != e.closed || rec.Deleted != e.deleted ||
		rec.Deadline != e.deadline || rec.Forks != uint64(len(m.forks(n))) || !reflect.DeepEqual(rec.Snapshot, e.snapshot) {
		return fmt.Errorf("stream %d: view has %+v, want %+v and so on", n, rec, marks)
	}
	return nil
}

// checkReads reads every visible stream whole, and a part of it.
func (r *run) checkReads() error {
	v := r.store.View()
	defer v.Close()
	for n, e := range r.model.streams {
		if e.gone || e.deleted {
			continue
		}
		rec, err := v.Stream(e.name)
		if err != nil || rec.ID != e.id || rec.Tail != e.tail() || rec.Earliest != e.earliest || rec.Closed != e.closed {
			return fmt.Errorf("stream %d: view has %+v, %v", n, rec, err)
		}
		span := e.tail() - e.earliest
		from := e.earliest + r.random.Uint64N(span+1)
		to := from + r.random.Uint64N(e.tail()-from+1)
		for _, p := range [][2]uint64{{e.earliest, e.tail()}, {from, to}} {
			data, err := r.read(v, rec, p[0], p[1])
			if err != nil {
				return fmt.Errorf("stream %d: read [%d,%d): %w", n, p[0], p[1], err)
			}
			if !bytes.Equal(data, e.content[p[0]:p[1]]) {
				return fmt.Errorf("stream %d: read [%d,%d) gives other bytes than were appended", n, p[0], p[1])
			}
		}
	}
	return nil
}
