package compactor

import (
	"context"
	"errors"
	"sync"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	// rewritePage is how many streams or objects are looked at under one view.
	rewritePage = 256
	// pendingPieces bounds how many segments wait for others to be written again with.
	pendingPieces = 1 << 15
)

// The reasons to write again.
const (
	reasonMerge  = "merge"
	reasonCopy   = "copy"
	reasonRepair = "repair"
)

// rewrites are the rounds in which segments are written again: small ones merged, and
// what is needed of objects of which little is. Nobody waits for that, so it is done in
// rounds, and what comes together in one shares objects as small streams do.
type rewrites struct {
	mu sync.Mutex // guards what follows; held during a step
	// next is when the next round begins, in ms of the store's clock.
	next  uint64
	round *round
	// paid is until when the rate has room for what was written.
	paid    time.Time
	streams rests[stream.ID]
	objects rests[string]
}

func (r *rewrites) init() {
	r.streams, r.objects = make(rests[stream.ID]), make(rests[string])
}

// round is a walk over the two indexes, interrupted when the rate is used up.
type round struct {
	c *Compactor
	*rewrites
	merged stream.ID // the walk has come so far
	copied string
	stage  int
	groups map[groupKey]*moves
	pieces int
	full   []*moves // groups that are ready to be written
	idle   []stream.ID
}

// moves become one object.
type moves struct {
	reason string
	list   []move
	bytes  uint64
}

// rewrite goes on with a round, or begins one when it is time. Sealing goes first: while
// it has more to do, one object is written between two of its passes.
func (c *Compactor) rewrite(ctx context.Context, busy bool) (bool, error) {
	r := &c.rewrites
	if !r.mu.TryLock() {
		return false, nil
	}
	defer r.mu.Unlock()
	if !r.room() {
		return false, nil
	}
	now := c.hot.Now()
	if r.round == nil {
		if now < r.next {
			return false, nil
		}
		r.round = &round{c: c, rewrites: r, groups: make(map[groupKey]*moves)}
		r.streams.expire(time.Now())
		r.objects.expire(time.Now())
	}
	owner := false
	for wrote := false; !busy || !wrote; {
		m, err := r.round.take(ctx)
		if err != nil {
			r.round = nil
			return false, err
		}
		if m == nil {
			r.round, r.next = nil, now+uint64(c.opts.Policy.MaxAge.Milliseconds())
			return wrote, nil
		}
		if !owner {
			if err := c.opts.Cold.CheckOwner(ctx); err != nil {
				return false, err
			}
			owner = true
		}
		if err := r.round.write(ctx, m); err != nil {
			r.round.putBack(m, err)
			return false, err
		}
		wrote = true
		r.pay(m.bytes, c.opts.Policy.RewriteRate)
		if !r.room() {
			return false, nil
		}
	}
	return true, nil
}

// pay counts written bytes against the rate.
func (r *rewrites) pay(bytes, rate uint64) {
	if now := time.Now(); r.paid.Before(now) {
		r.paid = now
	}
	r.paid = r.paid.Add(time.Duration(float64(bytes) / float64(rate) * float64(time.Second)))
}

// room reports whether the rate allows to write: what was written may be a second ahead.
func (r *rewrites) room() bool { return r.paid.Before(time.Now().Add(time.Second)) }

// take returns what becomes the next object, nil when the round is over.
func (r *round) take(ctx context.Context) (*moves, error) {
	stages := []func(context.Context) (done bool, err error){r.merges, r.flush, r.copies, r.flush}
	for len(r.full) == 0 && r.stage < len(stages) {
		done, err := stages[r.stage](ctx)
		if err != nil {
			return nil, err
		}
		if done {
			r.stage++
		}
	}
	if len(r.full) == 0 {
		return nil, nil
	}
	m := r.full[0]
	r.full = r.full[1:]
	return m, nil
}

// merges looks at a page of streams with small segments. Those that have none any more
// leave the index.
func (r *round) merges(ctx context.Context) (bool, error) {
	done, err := r.mergesPage()
	if err != nil {
		return false, err
	}
	for _, id := range r.idle {
		if err := r.c.hot.Unmerge(ctx, id); err != nil {
			return false, err
		}
	}
	r.idle = r.idle[:0]
	return done, nil
}

func (r *round) mergesPage() (bool, error) {
	v := r.c.hot.View()
	defer v.Close()
	ids, err := v.Mergeable(r.merged, rewritePage)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		r.merged = id
		if r.streams.resting(id, time.Now()) {
			continue
		}
		m, k, err := r.c.mergeOf(v, id)
		switch {
		case errors.Is(err, stream.ErrNotFound) || err == nil && m.was == nil:
			r.idle = append(r.idle, id)
		case err != nil:
			return false, err
		default:
			r.gather(reasonMerge, k, m)
		}
	}
	return len(ids) < rewritePage, nil
}

// copies looks at one object of which little is needed.
func (r *round) copies(ctx context.Context) (bool, error) {
	v := r.c.hot.View()
	keys, err := v.Sparse(r.copied, 1)
	v.Close()
	if err != nil || len(keys) == 0 {
		return true, err
	}
	r.copied = keys[0]
	if r.objects.resting(keys[0], time.Now()) {
		return false, nil
	}
	list, k, err := r.c.copyOf(ctx, keys[0])
	if isOutage(err) {
		return false, err
	}
	if err != nil && r.objects.add(keys[0], time.Now()) {
		r.c.log.Error("cannot copy what is needed of an object", "key", keys[0], "err", err)
	}
	for _, m := range list {
		if !r.streams.resting(m.id, time.Now()) {
			r.gather(reasonCopy, k, m)
		}
	}
	return false, nil
}

// isOutage tells trouble of the object store from that with one object: an object that
// is missing or damaged stays so.
func isOutage(err error) bool {
	return errors.Is(err, stream.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, stream.ErrColdUnavailable) && !errors.Is(err, cold.ErrMissing) && !errors.Is(err, segment.ErrCorrupt)
}

// gather adds a range to its group. A large one has an object to itself.
func (r *round) gather(reason string, k groupKey, m move) {
	target := r.c.opts.Policy.Target
	if reason == reasonMerge && !hot.Small(m.bytes(), target) {
		r.full = append(r.full, &moves{reason: reason, list: []move{m}, bytes: m.bytes()})
		return
	}
	g := r.groups[k]
	if g == nil {
		g = &moves{reason: reason}
		r.groups[k] = g
	}
	g.list = append(g.list, m)
	g.bytes += m.bytes()
	r.pieces += len(m.was)
	switch {
	case g.bytes >= target || len(g.list) == segment.MaxEntries:
		r.fill(k)
	case r.pieces >= pendingPieces:
		r.fillAll()
	}
}

func (r *round) fill(k groupKey) {
	g := r.groups[k]
	delete(r.groups, k)
	for _, m := range g.list {
		r.pieces -= len(m.was)
	}
	r.full = append(r.full, g)
}

func (r *round) fillAll() {
	for k := range r.groups {
		r.fill(k)
	}
}

func (r *round) flush(context.Context) (bool, error) {
	r.fillAll()
	return true, nil
}

// putBack lets what met an outage be tried again by the next pass.
func (r *round) putBack(m *moves, err error) {
	if isOutage(err) {
		r.full = append([]*moves{m}, r.full...)
	}
}

// write makes one object. A stream whose bytes cannot be read is left out, and rests.
func (r *round) write(ctx context.Context, m *moves) error {
	for len(m.list) > 0 {
		s, bad, err := r.c.buildMoves(ctx, m.list)
		if bad != 0 && !isOutage(err) && ctx.Err() == nil {
			r.rest(bad, err)
			m.list = without(m.list, bad)
			continue
		}
		if err != nil || s == nil {
			return err
		}
		defer s.Release()
		return r.finish(ctx, m.reason, s)
	}
	return nil
}

func (r *round) finish(ctx context.Context, reason string, s *Sealing) error {
	if err := s.replace(ctx, reason); err != nil {
		return err
	}
	for _, id := range s.ids {
		delete(r.streams, id)
	}
	return nil
}

// replace takes all steps for an object of segments that are written again.
func (s *Sealing) replace(ctx context.Context, reason string) error {
	metrics := s.c.metrics
	if err := s.take(ctx); err != nil {
		metrics.rewrites.WithLabelValues(reason, "failed").Inc()
		return err
	}
	metrics.rewrites.WithLabelValues(reason, "conflict").Add(float64(s.passed))
	metrics.rewrites.WithLabelValues(reason, "done").Add(float64(len(s.ids) - s.passed))
	metrics.rewrittenBytes.WithLabelValues(reason).Add(float64(s.content))
	s.c.log.Debug("segments written again", "reason", reason, "streams", len(s.ids), "bytes", s.named, "key", s.key)
	return nil
}

func (r *round) rest(id stream.ID, err error) {
	if r.streams.add(id, time.Now()) {
		r.c.log.Error("cannot write segments of a stream again", "stream", id.String(), "err", err)
	}
}

func without(list []move, id stream.ID) []move {
	var left []move
	for _, m := range list {
		if m.id != id {
			left = append(left, m)
		}
	}
	return left
}
