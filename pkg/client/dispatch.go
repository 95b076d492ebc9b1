package client

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"

	"firn/pkg/stream"
)

// errBefore: the batch before this one failed, which is the error to be told.
var errBefore = errors.New("the batch before failed")

// flight is the dispatcher's own state: which batches are under way.
type flight struct {
	p     *Producer
	epoch uint64
	seq   uint64   // of the next batch
	under []*batch // oldest first
	// established: the server has acknowledged a batch of the epoch. Before, there is
	// one batch at a time, as the epoch may have to change.
	established bool
	landed      chan struct{} // a batch is done
	failed      bool          // one was not acknowledged
}

// run sends batches until there is an error, or nothing more to come. All goroutines
// have ended when it returns.
func (p *Producer) run() {
	defer close(p.done)
	f := flight{p: p, epoch: p.o.Epoch, landed: make(chan struct{}, 1)}
	for {
		for f.hasRoom() {
			b := p.next(len(f.under) == 0)
			if b == nil {
				break
			}
			f.launch(b)
		}
		if len(f.under) == 0 && p.over() {
			return
		}
		select {
		case <-p.wake:
		case <-f.landed:
			f.land()
		}
	}
}

// next takes the next batch, nil if there is none to be sent. One that closes the stream
// goes alone: a closed stream takes no repetition of those before it (B§5.2.1).
func (p *Producer) next(alone bool) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.open
	switch {
	case p.err != nil:
		return nil
	case len(p.full) > 0:
		b, p.full = p.full[0], p.full[1:]
	case b != nil && b.end && !alone:
		return nil
	default:
		p.open = nil
	}
	return b
}

func (p *Producer) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil || p.closing && p.open == nil && len(p.full) == 0
}

func (f *flight) hasRoom() bool {
	return len(f.under) == 0 || f.established && len(f.under) < f.p.o.InFlight
}

// launch sends a batch, and returns when its request was written: so the next one comes
// behind it, most of the time. Where they do overtake each other, deliver knows what to
// do.
func (f *flight) launch(b *batch) {
	b.seal()
	b.epoch, b.seq = f.epoch, f.seq
	if n := len(f.under); n > 0 {
		b.prev = f.under[n-1]
	}
	f.seq++
	f.under = append(f.under, b)
	claim := !f.established && f.p.o.AutoClaim
	go func() {
		b.err = f.p.deliver(b, claim)
		close(b.done)
		select {
		case f.landed <- struct{}{}:
		default:
		}
	}()
	<-b.sent
}

// land takes the oldest batches that are done. Those behind one that is not must wait:
// what is acknowledged is a prefix.
func (f *flight) land() {
	for len(f.under) > 0 {
		b := f.under[0]
		select {
		case <-b.done:
		default:
			return
		}
		f.under = f.under[1:]
		if f.failed = f.failed || b.err != nil; !f.failed {
			f.established, f.epoch = true, b.epoch
		}
		b.prev = nil // nor is its body needed
		f.p.settle(b, f.failed)
	}
}

// settle counts a batch that is done.
func (p *Producer) settle(b *batch, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed {
		p.fail(b.err)
	} else {
		p.acked += b.count
		p.held -= b.taken
	}
	p.broadcast()
}

// fail ends the producer, unless it has ended already. mu is held.
func (p *Producer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.open, p.full = nil, nil
}

// deliver sends a batch until it is known to be in the stream, or never to be. It is
// first sent without waiting for the one before, and then only behind it.
func (p *Producer) deliver(b *batch, claim bool) error {
	back := backoff{retry: p.s.o.Retry}
	behind := b.prev == nil // the one before is acknowledged
	unsure := false         // an attempt may have been done
	for {
		err := p.post(b, unsure)
		b.wasSent()
		if err == nil {
			return nil
		}
		current, used := usedEpoch(b, err)
		_, gap := errors.AsType[*stream.SeqGapError](err)
		switch {
		case claim && used && !unsure && current < stream.MaxProducerNumber:
			// If the old epoch might have been accepted, this would send it twice.
			b.epoch = current + 1
			continue
		case gap && behind:
			return err
		case !gap:
			unsure = unsure || !unsent(err)
			if err := back.wait(p.ctx, err); err != nil {
				return err
			}
		}
		if !behind {
			<-b.prev.done
			if b.prev.err != nil {
				return errBefore
			}
			behind = true
		}
	}
}

// usedEpoch reports whether err says that a batch's epoch, or a greater one, was used
// before, and the greatest one known.
func usedEpoch(b *batch, err error) (current uint64, used bool) {
	if stale, ok := errors.AsType[*stream.StaleEpochError](err); ok {
		return stale.Current, true
	}
	return b.epoch, errors.Is(err, ErrEpochUsed)
}

// unsent reports whether err says that the request never left.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// post makes one attempt. unsure: an earlier one may have been done.
func (p *Producer) post(b *batch, unsure bool) error {
	h := make(http.Header)
	h.Set("Producer-Id", p.o.ID)
	h.Set("Producer-Epoch", strconv.FormatUint(b.epoch, 10))
	h.Set("Producer-Seq", strconv.FormatUint(b.seq, 10))
	if len(b.body) > 0 {
		h.Set("Content-Type", p.o.ContentType)
	}
	if b.end {
		h.Set("Stream-Closed", "true")
	}
	ctx := httptrace.WithClientTrace(p.ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { b.wasSent() },
	})
	resp, err := p.s.o.send(ctx, request{method: http.MethodPost, url: p.s.URL(), header: h, body: b.body})
	if err != nil {
		return err
	}
	defer drain(resp)
	if _, err := nextOffset(resp.Header); err != nil && resp.Header.Get("Producer-Seq") == "" {
		return err // whoever said yes, it was no stream
	}
	return p.explained(b, resp, unsure)
}

// explained checks that an answer of success is about this producer's own doing. A
// duplicate of what was not sent before means that somebody else sent it, and that the
// server has dropped this batch (B§5.2.1).
func (p *Producer) explained(b *batch, resp *http.Response, unsure bool) error {
	duplicate := resp.StatusCode == http.StatusNoContent && len(b.body) > 0
	highest, err := strconv.ParseUint(resp.Header.Get("Producer-Seq"), 10, 64)
	if duplicate && !unsure || err == nil && highest >= b.seq+uint64(p.o.InFlight) {
		return fmt.Errorf("producer %s, epoch %d, sequence %d: %w", p.o.ID, b.epoch, b.seq, ErrEpochUsed)
	}
	return nil
}
