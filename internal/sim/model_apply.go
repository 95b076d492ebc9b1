package sim

import (
	"bytes"
	"maps"
	"slices"

	"firn/pkg/stream"
	"firn/tier"
)

// create makes a stream or a fork. The id and the offsets of a new one are the store's
// to choose; they are filled in by born.
func (m *model) create(r tier.CreateRequest, stored []byte) (created bool, err error) {
	existing, err := m.find(r.Name)
	switch err {
	case stream.ErrGone:
		return false, stream.ErrNameBlocked
	case nil:
		return false, m.matches(existing, r)
	case stream.ErrNotFound:
	default:
		return false, err
	}
	s := &life{
		name: r.Name, json: r.ContentType == "application/json", closed: r.Closed,
		lifetime: r.Lifetime, asked: r.Lifetime, content: stored,
	}
	if r.Fork != nil {
		if err := m.fork(s, *r.Fork); err != nil {
			return false, err
		}
		s.content = slices.Concat(s.content, stored)
	}
	if old := m.names[r.Name]; old != nil && old.deleted {
		return false, stream.ErrNameBlocked // it has ended just now, and has forks
	}
	m.names[r.Name] = s
	if l := s.lifetime; l.Sliding {
		s.asleep = m.now + l.TTL*1000
		s.dead = s.asleep
	} else if !l.At.IsZero() {
		s.asleep = uint64(l.At.UnixMilli())
		s.dead = s.asleep
	}
	return true, nil
}

// born takes over what the store has chosen for a new stream.
func (m *model) born(n stream.Name, id stream.ID, offsets uint64) {
	s := m.edit(n)
	s.id, s.offsets = id, offsets
	if s.source != nil {
		m.forks[s.source.id]++
	}
}

func (m *model) matches(s *life, r tier.CreateRequest) error {
	same := s.closed == r.Closed && s.asked.Equal(r.Lifetime) && (s.source != nil) == (r.Fork != nil) &&
		(r.ContentType == "" || r.ContentType == s.contentType())
	if f := r.Fork; same && f != nil {
		same = s.from == f.Source && s.sub == f.SubOffset && (f.Offset == nil || *f.Offset == s.offset(s.anchor))
	}
	if !same {
		return stream.ErrExists
	}
	return nil
}

func (m *model) fork(s *life, f tier.ForkRequest) error {
	src, err := m.find(f.Source)
	switch err {
	case nil:
	case stream.ErrGone:
		return stream.ErrForkSourceGone
	default:
		return stream.ErrForkSourceNotFound
	}
	anchor := src.tail()
	if f.Offset != nil {
		anchor = f.Offset.Position
	}
	switch {
	case anchor > src.tail():
		return stream.ErrOffsetPastTail
	case anchor < src.earliest:
		return &stream.TrimmedError{Earliest: src.offset(src.earliest)}
	case !src.boundary(anchor):
		return stream.ErrOffsetNotBoundary
	}
	pos, ok := src.advance(anchor, f.SubOffset, m.page)
	if !ok {
		return stream.ErrForkSubOffset
	}
	s.json, s.source, s.from, s.anchor, s.sub = src.json, src, f.Source, anchor, f.SubOffset
	s.base, s.earliest, s.content, s.snapshot = pos, src.earliest, src.content[:pos:pos], src.snapshot
	if s.lifetime == (stream.Lifetime{}) {
		s.lifetime = src.lifetime
	}
	return nil
}

// advance goes n messages, or bytes, past an anchor, within a page.
func (s *life) advance(anchor, n, page uint64) (uint64, bool) {
	if n == 0 {
		return anchor, true
	}
	if n > s.tail()-anchor || n > page {
		return 0, false
	}
	if !s.json {
		return anchor + n, true
	}
	pos := anchor
	for range n {
		i := bytes.IndexByte(s.content[pos:], '\n')
		if i < 0 {
			return 0, false
		}
		pos += uint64(i) + 1
	}
	return pos, pos <= anchor+page
}

// append decides on an append as the protocol does (B§5.2). The result's Tail is the
// tail afterwards.
func (m *model) append(r tier.AppendRequest, stored []byte) (tier.AppendResult, error) {
	s, err := m.find(r.Name)
	if err != nil {
		return tier.AppendResult{}, err
	}
	if len(stored) == 0 && !r.Close {
		return tier.AppendResult{}, stream.ErrEmptyBody
	}
	p := r.Producer
	var known *stream.ProducerState
	if p != nil {
		if is, ok := s.producers[p.ID]; ok {
			known = &is
		}
	}
	again := tier.AppendResult{Tail: s.offset(s.tail()), Closed: s.closed, Duplicate: true, Producer: known}
	stale := known != nil && p.Epoch < known.Epoch
	switch {
	case s.closed && (p != nil && s.closer != nil && *p == *s.closer || p == nil && len(stored) == 0):
		m.use(r.Name, true)
		return again, nil
	case s.closed && !stale:
		return tier.AppendResult{}, &stream.ClosedError{Tail: s.offset(s.tail())}
	case !s.closed && len(stored) > 0 && r.ContentType != s.contentType():
		return tier.AppendResult{}, stream.ErrContentType
	case stale:
		return tier.AppendResult{}, &stream.StaleEpochError{Current: known.Epoch}
	}
	if p != nil {
		expected := uint64(0)
		if known != nil && p.Epoch == known.Epoch {
			if p.Seq <= known.Seq {
				m.use(r.Name, true)
				return again, nil
			}
			expected = known.Seq + 1
		}
		switch {
		case p.Seq == expected:
		case known != nil && p.Epoch > known.Epoch:
			return tier.AppendResult{}, stream.ErrProducerStart
		default:
			return tier.AppendResult{}, &stream.SeqGapError{Expected: expected, Received: p.Seq}
		}
	}
	if r.Seq != nil && s.seq != nil && *r.Seq <= *s.seq {
		return tier.AppendResult{}, stream.ErrSeqRegression
	}
	if p != nil && known == nil && len(s.producers) >= producers {
		return tier.AppendResult{}, stream.ErrProducerLimit
	}
	s = m.edit(r.Name)
	s.content = slices.Concat(s.content, stored)
	if r.Seq != nil {
		s.seq = r.Seq
	}
	done := tier.AppendResult{Tail: s.offset(s.tail()), Closed: r.Close}
	if p != nil {
		done.Producer = &stream.ProducerState{Epoch: p.Epoch, Seq: p.Seq}
		if s.producers = maps.Clone(s.producers); s.producers == nil {
			s.producers = make(map[string]stream.ProducerState)
		}
		s.producers[p.ID] = *done.Producer
	}
	if r.Close {
		s.closed, s.closer = true, p
	}
	m.use(r.Name, true)
	return done, nil
}

// publish decides on a snapshot (X§2.2).
func (m *model) publish(n stream.Name, pos uint64, blob []byte) error {
	s, err := m.find(n)
	if err != nil {
		return err
	}
	switch {
	case pos > s.tail():
		return stream.ErrSnapshotPastTail
	case pos < s.earliest:
		return &stream.TrimmedError{Earliest: s.offset(s.earliest)}
	case !s.boundary(pos):
		return stream.ErrOffsetNotBoundary
	}
	s = m.edit(n)
	s.snapshot, s.earliest = &snapshot{pos, blob}, pos
	m.use(n, true)
	return nil
}

func (m *model) delete(n stream.Name) error {
	if _, err := m.find(n); err != nil {
		return err
	}
	m.remove(n)
	return nil
}

func (m *model) dropBucket(b string) error {
	if b == stream.DefaultBucket {
		return stream.ErrBucketReserved
	}
	m.expire()
	if !m.buckets[b] {
		return stream.ErrBucketNotFound
	}
	for n := range m.names {
		if n.Bucket == b {
			return stream.ErrBucketNotEmpty
		}
	}
	delete(m.buckets, b)
	return nil
}
