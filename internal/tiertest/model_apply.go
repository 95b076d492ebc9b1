package tiertest

import (
	"maps"
	"slices"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// outcome is what a command answers.
type outcome struct {
	err      error
	created  bool
	record   *hot.Record // of a stream that was created or found
	appended hot.AppendResult
	trimmed  hot.TrimResult
	passed   []stream.ID // of a pack, streams that have changed
}

// apply does one command and returns its outcome, in which record is not set.
// actual is that of the store, if there is one: ids of streams come from it.
func (m *model) apply(c *call, actual *outcome) outcome {
	var o outcome
	switch c.op.Do {
	case "bucket":
		if _, ok := m.buckets[c.op.Bucket]; ok {
			o.err = stream.ErrBucketExists
		} else {
			m.buckets[c.op.Bucket] = m.now
		}
	case "unbucket":
		o.err = m.dropBucket(c.op.Bucket)
	case "create", "fork":
		o = m.create(c, actual)
	case "append":
		o = m.append(c)
	case "delete":
		o.err = m.remove(c.op.Stream)
	case "expire":
		o.err = m.expire(c.op.Stream)
	case "publish":
		o.err = m.publish(c)
	case "intend":
		if m.objects[c.object].state != 0 {
			o.err = hot.ErrConflict
		} else {
			m.objects[c.object] = object{state: hot.Intended, due: m.now + m.intentGrace}
		}
	case "seal":
		o.err = m.seal(c)
	case "pack", "replace":
		o = m.pack(c)
	case "unmerge":
		if e := m.streams[c.op.Stream]; e != nil {
			e = m.edit(c.op.Stream)
			e.merge = !e.gone && e.run(m.target)
		}
	case "evict":
		o.err = m.evict(c.op)
	case "trim":
		o.trimmed = m.trim(c.op)
	case "abandon":
		if m.objects[c.object].state == hot.Intended {
			m.objects[c.object] = object{state: hot.Retired, due: m.now + m.grace}
		}
	case "forget":
		if m.objects[c.object].state == hot.Retired {
			delete(m.objects, c.object)
		}
	}
	m.settle()
	return o
}

func (m *model) dropBucket(bucket string) error {
	if _, ok := m.buckets[bucket]; !ok {
		return stream.ErrBucketNotFound
	}
	for n := range m.names {
		if n.Bucket == bucket {
			return stream.ErrBucketNotEmpty
		}
	}
	delete(m.buckets, bucket)
	return nil
}

func (m *model) create(c *call, actual *outcome) outcome {
	name := stream.Name{Bucket: c.op.Bucket, ID: c.op.ID}
	if _, ok := m.buckets[name.Bucket]; !ok {
		return outcome{err: stream.ErrBucketNotFound}
	}
	if n, ok := m.names[name]; ok {
		if e := m.streams[n]; !e.deleted && e.deadline != 0 && e.deadline <= m.now {
			m.remove(n)
		}
	}
	if n, ok := m.names[name]; ok {
		switch e := m.streams[n]; {
		case e.deleted:
			return outcome{err: stream.ErrNameBlocked}
		case !m.matches(e, c.op):
			return outcome{err: stream.ErrExists}
		}
		return outcome{}
	}
	e := &entity{
		name: name, contentType: c.op.contentType(), json: c.op.JSON, created: m.now, written: m.now,
		lifetime: c.op.lifetime(), asked: c.op.lifetime(), closed: c.op.Close,
	}
	if c.op.Do == "fork" {
		if err := m.fork(e, c.op); err != nil {
			return outcome{err: err}
		}
	} else {
		m.life = max(m.life+1, m.now)
		e.life = m.life
	}
	e.content = slices.Concat(e.content, c.op.payload(c.op.JSON))
	e.deadline = deadline(e.lifetime, m.now)
	if e.id = c.found; actual != nil && actual.record != nil {
		e.id = actual.record.ID
	}
	m.streams[c.op.New], m.names[name] = e, c.op.New
	return outcome{created: true}
}

// matches: a repeated request asks for the same stream (B§5.1, B§4.2).
func (m *model) matches(e *entity, o Op) bool {
	if e.closed != o.Close || !e.asked.Equal(o.lifetime()) || e.contentType != o.contentType() || (e.fork != nil) != (o.Do == "fork") {
		return false
	}
	return e.fork == nil || e.fork.from == m.streams[o.Stream].name && e.fork.subOffset == 0 && (!o.Anchored || e.fork.anchor == o.At)
}

func (m *model) fork(e *entity, o Op) error {
	switch m.visible(o.Stream) {
	case stream.ErrNotFound:
		return stream.ErrForkSourceNotFound
	case stream.ErrGone:
		return stream.ErrForkSourceGone
	}
	src := m.streams[o.Stream]
	switch {
	case o.At < src.earliest:
		return &stream.TrimmedError{Earliest: src.offset(src.earliest)}
	case o.At > src.tail():
		return stream.ErrOffsetPastTail
	}
	e.life, e.fork = src.life, &fork{source: o.Stream, from: src.name, anchor: o.At}
	e.base, e.floor, e.cut, e.sealed = o.At, o.At, o.At, o.At
	e.earliest, e.content = src.earliest, src.content[:o.At:o.At]
	if e.lifetime == (stream.Lifetime{}) {
		e.lifetime = src.lifetime
	}
	if s := src.snapshot; s != nil {
		e.snapshot = s
		obj := m.objects[s.Object]
		obj.live++
		m.objects[s.Object] = obj
	}
	return nil
}

func (m *model) append(c *call) outcome {
	if err := m.visible(c.op.Stream); err != nil {
		return outcome{err: err}
	}
	e, p := m.streams[c.op.Stream], c.op.Producer
	data := c.op.payload(e.json)
	var known *stream.ProducerState
	if p != nil {
		if s, ok := e.producers[p.ID]; ok {
			known = &s
		}
	}
	again := outcome{appended: hot.AppendResult{Tail: e.offset(e.tail()), Closed: e.closed, Duplicate: true, Producer: known}}
	if e.closed {
		switch {
		case p != nil && e.closer != nil && *p == *e.closer, p == nil && len(data) == 0:
			return again
		case known != nil && p.Epoch < known.Epoch:
			return outcome{err: &stream.StaleEpochError{Current: known.Epoch}}
		}
		return outcome{err: &stream.ClosedError{Tail: e.offset(e.tail())}}
	}
	if len(data) > 0 && c.contentType != e.contentType {
		return outcome{err: stream.ErrContentType}
	}
	if p != nil {
		switch {
		case known != nil && p.Epoch < known.Epoch:
			return outcome{err: &stream.StaleEpochError{Current: known.Epoch}}
		case known != nil && p.Epoch > known.Epoch && p.Seq != 0:
			return outcome{err: stream.ErrProducerStart}
		case known != nil && p.Epoch == known.Epoch && p.Seq <= known.Seq:
			return again
		case known != nil && p.Epoch == known.Epoch && p.Seq != known.Seq+1:
			return outcome{err: &stream.SeqGapError{Expected: known.Seq + 1, Received: p.Seq}}
		case known == nil && p.Seq != 0:
			return outcome{err: &stream.SeqGapError{Received: p.Seq}}
		}
	}
	if c.op.Seq != nil && e.seq != nil && *c.op.Seq <= *e.seq {
		return outcome{err: stream.ErrSeqRegression}
	}
	if p != nil && known == nil && len(e.producers) >= m.producers {
		return outcome{err: stream.ErrProducerLimit}
	}

	e = m.edit(c.op.Stream)
	e.content, e.written = slices.Concat(e.content, data), m.now
	if c.op.Seq != nil {
		e.seq = c.op.Seq
	}
	m.renew(e)
	var state *stream.ProducerState
	if p != nil {
		state = &stream.ProducerState{Epoch: p.Epoch, Seq: p.Seq}
		e.producers = maps.Clone(e.producers)
		if e.producers == nil {
			e.producers = make(map[string]stream.ProducerState)
		}
		e.producers[p.ID] = *state
	}
	if c.op.Close {
		e.closed, e.closer = true, p
	}
	return outcome{appended: hot.AppendResult{Tail: e.offset(e.tail()), Closed: e.closed, Producer: state}}
}

// remove deletes a stream, or hides it while it has forks; sources that were only
// kept for it go with it.
func (m *model) remove(n int) error {
	e := m.streams[n]
	switch {
	case e == nil || e.gone:
		return stream.ErrNotFound
	case e.deleted:
		return stream.ErrGone
	}
	e = m.edit(n)
	e.deleted = true
	m.hideSnapshot(e)
	for len(m.forks(n)) == 0 {
		e.gone = true
		delete(m.names, e.name)
		if e.fork == nil {
			break
		}
		n = e.fork.source
		if !m.streams[n].deleted {
			break
		}
		e = m.edit(n)
	}
	return nil
}

func (m *model) hideSnapshot(e *entity) {
	if e.snapshot != nil {
		m.drop(e.snapshot.Object, 1, m.grace)
		e.snapshot = nil
	}
}

func (m *model) expire(n int) error {
	e := m.streams[n]
	if e == nil || e.gone || e.deleted {
		return nil
	}
	l := e.lifetime
	if l.Sliding && e.written+l.TTL*1000 <= m.now || !l.At.IsZero() && uint64(l.At.UnixMilli()) <= m.now {
		return m.remove(n)
	}
	return nil
}
