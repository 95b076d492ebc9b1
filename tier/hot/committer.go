package hot

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

const (
	// maxBatchBytes ends a batch. Pebble rotates its memtable for a batch of half
	// the memtable's size, so batches stay well below that.
	maxBatchBytes = 8 << 20
	// maxBatchCommands ends a batch too, so that one answer never waits for many.
	maxBatchCommands = 4096
)

// request is a queued command and the place for its answer.
type request struct {
	command any
	now     uint64 // ms, when it was queued
	result  any
	err     error
	done    chan struct{} // takes one value when the answer is there
	// left out of its batch, because what it needs of the disk cannot be read.
	left bool
}

func newRequest() any { return &request{done: make(chan struct{}, 1)} }

// propose queues a command and waits for its outcome. Once queued, a command is
// not withdrawn: if ctx ends before the answer, the outcome is unknown.
func (s *Store) propose(ctx context.Context, command any) (any, error) {
	r := s.requests.Get().(*request)
	r.command, r.now, r.left = command, s.now(), false
	if err := s.enqueue(ctx, r); err != nil {
		s.requests.Put(r)
		return nil, err
	}
	select {
	case <-r.done:
	case <-s.stopped:
		// The committer has ended. Either it answered on its way out, or this
		// command came too late for it.
		select {
		case <-r.done:
		default:
			return nil, stream.ErrUnavailable
		}
	}
	result, err := r.result, r.err
	r.command, r.result, r.err = nil, nil, nil
	s.requests.Put(r)
	return result, err
}

// enqueue waits for a place in the queue.
func (s *Store) enqueue(ctx context.Context, r *request) error {
	select {
	case <-s.stop:
		return stream.ErrUnavailable
	default:
	}
	select {
	case s.queue <- r:
		return nil
	default: // a select of many costs ten times as much, and is hardly ever needed
	}
	select {
	case s.queue <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stop:
		return stream.ErrUnavailable
	case <-s.stopped:
		return stream.ErrUnavailable
	}
}

// commit is the committer: the only goroutine that writes.
func (s *Store) commit() {
	defer close(s.stopped)
	var batch []*request
	for {
		select {
		case r := <-s.queue:
			batch = append(batch, r)
		case <-s.stop:
			for batch = s.gather(batch); len(batch) > 0; batch = s.gather(batch) {
				s.commitBatch(batch)
				batch = batch[:0]
			}
			return
		}
		// Who is about to queue a command comes first, so that one sync serves it too:
		// with 64 clients on two processors that takes a third of the syncs away.
		runtime.Gosched()
		batch = s.gather(batch)
		s.commitBatch(batch)
		clear(batch)
		batch = batch[:0]
	}
}

// gather adds what is queued at the moment. It never waits.
func (s *Store) gather(batch []*request) []*request {
	size := 0
	for _, r := range batch {
		size += payload(r)
	}
	for len(batch) < maxBatchCommands && size < maxBatchBytes {
		select {
		case r := <-s.queue:
			batch = append(batch, r)
			size += payload(r)
		default:
			return batch
		}
	}
	return batch
}

func payload(r *request) int {
	switch c := r.command.(type) {
	case *Append:
		return len(c.Payload)
	case Create:
		return len(c.Payload)
	}
	return 0
}

// commitBatch applies commands to one batch, makes it durable, publishes what it
// changed and answers. The commit is the point of no return: a crash before it
// leaves nothing of the batch that was acknowledged, a crash after it leaves all.
func (s *Store) commitBatch(batch []*request) {
	if s.broken.Load() {
		s.answer(batch, stream.ErrUnavailable)
		return
	}
	start := time.Now()
	was := *s.state.Load()
	t, err := s.apply(batch, was)
	if err != nil {
		s.answer(batch, stream.ErrUnavailable)
		s.fatal(err.Error())
	}
	defer t.batch.Close()
	changes, err := t.finish(was)
	if err != nil {
		s.answer(batch, stream.ErrUnavailable)
		s.fatal(fmt.Sprintf("finish batch: %v", err))
	}
	if !t.batch.Empty() {
		if err := s.commitAndPublish(t, changes); err != nil {
			s.answer(batch, stream.ErrUnavailable)
			s.fatal(fmt.Sprintf("commit batch: %v", err))
		}
		if soft := s.opts.SoftBytes; soft > 0 && t.state.Hot > max(soft, was.Hot) {
			select {
			case s.over <- struct{}{}:
			default:
			}
		}
		s.uses.forget(changes)
		s.tellGrowth(changes)
	}
	s.metrics.observe(batch, t.batch.Len(), time.Since(start))
	for _, r := range batch {
		r.done <- struct{}{}
	}
}

// apply puts commands into one batch. One that meets a damaged block of the disk is
// refused with [ErrDamaged]; as it may have written a part of what it does, the batch is
// begun anew without it. Damage in one stream must not stop the others, again at each
// start. Any other failure is returned.
func (s *Store) apply(batch []*request, was state) (*txn, error) {
	for {
		t := &txn{
			limits: s.limits(), table: s.table, batch: s.db.NewIndexedBatch(),
			state: was, drafts: make(map[stream.ID]*draft, len(batch)),
		}
		err := t.applyAll(batch)
		if err == nil {
			return t, nil
		}
		t.batch.Close()
		if !errors.Is(err, errLeftOut) {
			return nil, err
		}
	}
}

// errLeftOut: a command was left out, those after it have not been applied.
var errLeftOut = errors.New("a command is left out")

// applyAll applies the commands that are not left out, in order. Errors: errLeftOut.
func (t *txn) applyAll(batch []*request) error {
	for _, r := range batch {
		if r.left {
			continue
		}
		t.now = r.now
		r.result, r.err = t.apply(r.command)
		switch {
		case r.err == nil || isRefusal(r.err):
		case pebble.IsCorruptionError(r.err):
			r.left, r.result, r.err = true, nil, fmt.Errorf("%w: %w", ErrDamaged, r.err)
			return errLeftOut
		default:
			return fmt.Errorf("apply %T: %w", r.command, r.err)
		}
	}
	return nil
}

// commitAndPublish makes a batch durable and visible. For who copies the catalog both,
// and the note of what the batch has changed, are one step.
func (s *Store) commitAndPublish(t *txn, changes []change) error {
	if c := s.changes.Load(); c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if err := c.grow(t); err != nil {
			return err
		}
	}
	if err := s.write(t, changes); err != nil {
		return err
	}
	s.state.Store(&t.state)
	s.table.publish(changes)
	return nil
}

func (s *Store) write(t *txn, changes []change) error {
	switch s.opts.fault {
	case FaultNoSync:
		return t.batch.Commit(pebble.NoSync)
	case FaultShowUnsynced:
		if err := t.batch.Commit(pebble.NoSync); err != nil {
			return err
		}
		s.table.publish(changes)
		return s.db.LogData(nil, pebble.Sync)
	case FaultProducerApart:
		return s.writeProducersApart(t)
	}
	return t.batch.Commit(pebble.Sync)
}

// answer gives all commands of a batch one outcome: the store has failed.
func (s *Store) answer(batch []*request, err error) {
	for _, r := range batch {
		r.result, r.err = nil, err
		r.done <- struct{}{}
	}
}

func (s *Store) limits() limits {
	o := &s.opts
	l := limits{
		sealTarget: o.SealTarget, producers: o.Producers,
		grace: uint64(o.Grace.Milliseconds()), keepHistory: never, fault: o.fault,
	}
	l.intentGrace = max(l.grace, uint64((10 * time.Minute).Milliseconds()))
	if o.KeepHistory >= 0 {
		l.keepHistory = uint64(o.KeepHistory.Milliseconds())
	}
	return l
}

// writeProducersApart plants a fault: a crash between its two commits leaves data
// without the producer state that recognises its retry.
func (s *Store) writeProducersApart(t *txn) error {
	data, producers := s.db.NewBatch(), s.db.NewBatch()
	defer data.Close()
	defer producers.Close()
	for r := t.batch.Reader(); ; {
		kind, k, v, ok, err := r.Next()
		if err != nil || !ok {
			if err != nil {
				return err
			}
			break
		}
		b := data
		if k[0] == kindProducer {
			b = producers
		}
		switch kind {
		case pebble.InternalKeyKindSet:
			err = b.Set(k, v, nil)
		case pebble.InternalKeyKindDelete:
			err = b.Delete(k, nil)
		case pebble.InternalKeyKindRangeDelete:
			err = b.DeleteRange(k, v, nil)
		default:
			err = errors.New("unexpected kind of key in a batch")
		}
		if err != nil {
			return err
		}
	}
	if err := data.Commit(pebble.Sync); err != nil {
		return err
	}
	return producers.Commit(pebble.NoSync)
}
