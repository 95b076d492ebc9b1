package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"firn/pkg/stream"
)

// ProducerOptions configures a [Producer]. The zero ProducerOptions is usable.
type ProducerOptions struct {
	// ID names the producer across its restarts, in at most [stream.MaxProducerID]
	// bytes (default: a random one).
	ID string
	// Epoch must be greater at each start of a producer with the same ID (B§5.2.1).
	Epoch uint64
	// AutoClaim takes the next epoch if Epoch was used before, for programs that cannot
	// remember theirs. It must not be used where two of them might start with one ID at
	// the same time: each would end the other.
	AutoClaim bool
	// ContentType must be the stream's (default application/octet-stream).
	ContentType string
	// BatchBytes is about the most that one request carries (default 256 KiB). Larger
	// data goes alone.
	BatchBytes int
	// InFlight is how many requests may be under way (default 4, 1 for no
	// pipelining). Data that arrives while all are gathers to the next batch.
	InFlight int
	// BufferBytes bounds what was appended and not acknowledged yet (default 8 MiB).
	// Above, Append waits. Larger data is taken alone.
	BufferBytes int
}

func (o ProducerOptions) withDefaults() ProducerOptions {
	if o.ID == "" {
		o.ID = rand.Text()
	}
	if o.ContentType == "" {
		o.ContentType = stream.DefaultContentType
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = 256 << 10
	}
	if o.InFlight <= 0 {
		o.InFlight = 4
	}
	if o.BufferBytes <= 0 {
		o.BufferBytes = 8 << 20
	}
	return o
}

// Producer appends to a stream in order, exactly once, whatever happens to requests and
// their answers (B§5.2.1). The first thing that cannot be repeated ends it: what was
// acknowledged until then is a prefix of what was appended. It is safe for concurrent
// use, and must be closed.
type Producer struct {
	s      *Stream
	o      ProducerOptions
	json   bool
	ctx    context.Context // of all requests
	cancel context.CancelFunc
	done   chan struct{} // no goroutine is left
	wake   chan struct{} // there is something to send, or an end

	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, when acked, held or err change
	full    []*batch      // oldest first
	open    *batch        // still gathers; nil: nothing
	held    int           // bytes of all batches that are not acknowledged
	// appended and acked count what Append took.
	appended, acked uint64
	closing         bool
	err             error
}

// NewProducer starts a producer. It does not ask the server for anything. Errors:
// those of options out of bounds.
func (s *Stream) NewProducer(o ProducerOptions) (*Producer, error) {
	o = o.withDefaults()
	if len(o.ID) > stream.MaxProducerID || strings.ContainsFunc(o.ID, unicode.IsControl) || o.Epoch > stream.MaxProducerNumber {
		return nil, fmt.Errorf("producer %q at epoch %d: an id has up to %d bytes and no control characters, an epoch is at most %d",
			o.ID, o.Epoch, stream.MaxProducerID, uint64(stream.MaxProducerNumber))
	}
	p := &Producer{
		s: s, o: o, json: stream.ModeOf(o.ContentType) == stream.JSON,
		done: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	go p.run()
	return p, nil
}

// Append takes data to be sent soon, after everything that was taken before. Of a JSON
// stream it is one message. It waits while the buffer is full, no longer than ctx. The
// data is copied. Errors: [stream.ErrEmptyBody] and a [*stream.JSONError], of which the
// producer takes no notice; [ErrProducerClosed]; what has ended the producer, see
// [Producer.Err].
func (p *Producer) Append(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return stream.ErrEmptyBody
	}
	if p.json {
		var err error
		if data, err = message(data); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.err != nil:
			return p.err
		case p.closing:
			return ErrProducerClosed
		case p.held == 0 || p.held+len(data) <= p.o.BufferBytes:
			p.gather(data)
			return nil
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
}

// gather puts data into the open batch. mu is held.
func (p *Producer) gather(data []byte) {
	if p.open != nil && p.open.size()+len(data) > p.o.BatchBytes {
		p.full = append(p.full, p.open)
		p.open = nil
	}
	if p.open == nil {
		p.open = newBatch(p.json)
	}
	p.open.add(data)
	p.held += len(data)
	p.appended++
	p.signal()
}

// Flush waits until all that was appended before is acknowledged: synced, and visible
// to readers. Errors: what has ended the producer; that of ctx, then it goes on.
func (p *Producer) Flush(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for target := p.appended; p.acked < target; {
		if p.err != nil {
			return p.err
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close flushes and ends the producer. If ctx ends before, the rest is given up, whose
// outcome is unknown. Errors: as of [Producer.Flush].
func (p *Producer) Close(ctx context.Context) error { return p.finish(ctx, false) }

// End is Close that also closes the stream for good, behind all that was appended.
// Errors: as of [Producer.Flush], and [ErrProducerClosed].
func (p *Producer) End(ctx context.Context) error { return p.finish(ctx, true) }

func (p *Producer) finish(ctx context.Context, end bool) error {
	p.mu.Lock()
	if end {
		if p.closing {
			p.mu.Unlock()
			return ErrProducerClosed
		}
		if p.open == nil {
			p.open = newBatch(p.json)
		}
		p.open.end = true
	}
	p.closing = true
	p.signal()
	p.mu.Unlock()
	defer p.cancel()
	select {
	case <-p.done:
		return p.Err()
	case <-ctx.Done():
		p.mu.Lock()
		p.fail(ctx.Err())
		p.broadcast()
		p.mu.Unlock()
		p.cancel()
		<-p.done
		return p.Err()
	}
}

// Err is what has ended the producer, nil if nothing has: a [*ClosedError], a
// [*stream.StaleEpochError] if another one with its ID has taken over, a
// [*stream.SeqGapError] if the server has lost what it acknowledged, [ErrEpochUsed],
// other [*Error]s, or an [ErrUnreachable] after the time of Options.Retry.
func (p *Producer) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Acked is how many of the appends, counted from the first, are acknowledged. After an
// error those behind them may have been done or not.
func (p *Producer) Acked() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.acked
}

// wait returns when something has changed, or ctx ends. mu is held, but not meanwhile.
func (p *Producer) wait(ctx context.Context) error {
	changed := p.changed
	p.mu.Unlock()
	defer p.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// signal wakes the dispatcher.
func (p *Producer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// broadcast wakes those who wait. mu is held.
func (p *Producer) broadcast() {
	close(p.changed)
	p.changed = make(chan struct{})
}
