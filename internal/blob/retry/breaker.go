package retry

import (
	"fmt"
	"sync"
	"time"

	"firn/internal/blob"
)

// BreakerOptions sets the breaker. The zero value is usable.
type BreakerOptions struct {
	// Failures opens the breaker when so many of the latest 2*Failures calls
	// failed within Window; default 10.
	Failures int
	// Window is for how long an outcome counts; default 30 s.
	Window time.Duration
	// MinOpen is how long the breaker stays open the first time, give or take a
	// quarter; each further time in an outage twice as long; default 1 s.
	MinOpen time.Duration
	// MaxOpen bounds that; default 30 s.
	MaxOpen time.Duration
}

func (o BreakerOptions) withDefaults() BreakerOptions {
	if o.Failures <= 0 {
		o.Failures = 10
	}
	if o.Window <= 0 {
		o.Window = 30 * time.Second
	}
	if o.MinOpen <= 0 {
		o.MinOpen = time.Second
	}
	if o.MaxOpen <= 0 {
		o.MaxOpen = 30 * time.Second
	}
	return o
}

// outcome is what an attempt says about the health of the store.
type outcome uint8

const (
	succeeded outcome = iota // the store answered, be it with a refusal
	failed                   // no answer, or "not now"
	unknown                  // nobody waited for the answer
)

type state uint8

const (
	closed   state = iota // calls pass
	open                  // calls fail at once
	halfOpen              // one call at a time passes, to see
)

// breaker is a state machine shared by all calls of a store.
//
//	closed    --many failures-->  open
//	open      --time is up----->  halfOpen
//	halfOpen  --success-------->  closed
//	halfOpen  --failure-------->  open, for longer
type breaker struct {
	opts    BreakerOptions
	now     func() time.Time
	rand    func(int64) int64
	metrics *metrics

	mu      sync.Mutex
	state   state
	until   time.Time     // open: when it ends
	lasts   time.Duration // how long open lasted or lasts; 0: no outage of late
	changed time.Time     // closed: since when
	probing bool          // halfOpen: a call is on its way
	turn    uint64        // counts changes of state; outcomes of earlier turns are stale
	ring    []result      // closed: the latest outcomes, oldest overwritten first
	next    int           // place in ring
}

type result struct {
	at     time.Time
	failed bool
}

func newBreaker(opts Options, m *metrics) *breaker {
	return &breaker{opts: opts.Breaker, now: opts.Now, rand: opts.Rand, metrics: m}
}

// begin lets a call pass, which must report its outcome through done, or refuses
// it with blob.ErrUnavailable.
func (b *breaker) begin() (done func(outcome), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.state == open && !now.Before(b.until) {
		b.become(halfOpen)
	}
	switch {
	case b.state == open:
		return nil, b.refusal(b.until.Sub(now))
	case b.state == halfOpen && b.probing:
		return nil, b.refusal(b.opts.MinOpen)
	case b.state == halfOpen:
		b.probing = true
	}
	turn := b.turn
	return func(o outcome) { b.end(turn, o) }, nil
}

func (b *breaker) refusal(after time.Duration) error {
	b.metrics.refused.Inc()
	return &blob.RetryAfterError{After: after, Err: fmt.Errorf("breaker is open, the object store keeps failing")}
}

// count takes the outcome of something that did not ask before, such as a body.
func (b *breaker) count(o outcome) {
	b.mu.Lock()
	turn := b.turn
	isClosed := b.state == closed
	b.mu.Unlock()
	if isClosed {
		b.end(turn, o)
	}
}

func (b *breaker) end(turn uint64, o outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if turn != b.turn {
		return // began before the latest change
	}
	switch {
	case b.state == halfOpen && o == unknown:
		b.probing = false
	case b.state == halfOpen && o == succeeded:
		b.become(closed)
	case b.state == halfOpen:
		b.trip()
	case b.state == closed && o != unknown:
		b.record(o == failed)
	}
}

// record notes an outcome and trips if failures prevail.
func (b *breaker) record(failed bool) {
	now := b.now()
	if len(b.ring) < 2*b.opts.Failures {
		b.ring = append(b.ring, result{now, failed})
	} else {
		b.ring[b.next] = result{now, failed}
		b.next = (b.next + 1) % len(b.ring)
	}
	if b.lasts > 0 && now.Sub(b.changed) > b.opts.Window {
		b.lasts = 0 // it has been well for long enough
	}
	if !failed {
		return
	}
	failures := 0
	for _, r := range b.ring {
		if r.failed && now.Sub(r.at) <= b.opts.Window {
			failures++
		}
	}
	if failures >= b.opts.Failures {
		b.trip()
	}
}

func (b *breaker) trip() {
	b.lasts = min(max(2*b.lasts, b.opts.MinOpen), b.opts.MaxOpen)
	quarter := int64(b.lasts / 4)
	b.until = b.now().Add(b.lasts + time.Duration(b.rand(2*quarter+1)-quarter))
	b.become(open)
}

func (b *breaker) become(s state) {
	b.state, b.probing, b.changed = s, false, b.now()
	b.ring, b.next = b.ring[:0], 0
	b.turn++
	b.metrics.state.Set(float64(s))
}
