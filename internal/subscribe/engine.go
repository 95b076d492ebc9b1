package subscribe

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/subscribe/webhook"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Options configure an [Engine]. Hot is required.
type Options struct {
	Hot *hot.Store
	// Webhooks says how webhooks are sent. No request outlives the lease of its wake.
	Webhooks webhook.Options
	// Subscriptions bounds their number (default 100,000), Backfill the streams that a
	// pattern may match when its subscription is made (the same).
	Subscriptions, Backfill int
	// Links bounds the explicit links of a subscription, and the streams that one answer
	// shows (default 10,000).
	Links int
	// Pending bounds the streams that are remembered as pending for one subscription
	// (default 4,096). Further ones are looked for when these are done.
	Pending int
	// KeyLife is the age at which the signing key is replaced; 0 is never.
	KeyLife time.Duration
	// Requests bounds the webhooks under way (default 64), RequestsPerHost those to one
	// host and port (default 8). Further ones wait.
	Requests, RequestsPerHost int

	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// After is the clock of waiting; nil is time.After. The time is the hot tier's.
	After func(time.Duration) <-chan time.Time
	// Random makes signing keys; nil is crypto/rand.
	Random io.Reader
	// Chance yields numbers in [0,1) for the jitter of retries; nil is a random source.
	Chance func() float64
}

// eventLane is how many pull-wakes are written at a time.
const eventLane = 64

func (o Options) withDefaults() Options {
	setDefault(&o.Subscriptions, 100_000)
	setDefault(&o.Backfill, 100_000)
	setDefault(&o.Links, 10_000)
	setDefault(&o.Pending, 4096)
	setDefault(&o.Requests, 64)
	setDefault(&o.RequestsPerHost, 8)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Chance == nil {
		o.Chance = mathrand.Float64
	}
	return o
}

func setDefault(field *int, value int) {
	if *field <= 0 {
		*field = value
	}
}

// Engine keeps subscriptions and wakes who waits. Its methods are safe for concurrent
// use.
type Engine struct {
	opts    Options
	hot     *hot.Store
	log     *slog.Logger
	keys    *keyring
	sender  *webhook.Sender
	metrics *metrics

	// signal takes a value when there may be something to do.
	signal chan struct{}
	work   sync.WaitGroup

	// admin serializes changes of what is subscribed to. It is held over commits.
	admin sync.Mutex

	// mu guards what follows and all entries. It is held by the committer, so briefly:
	// never over a read or a commit.
	mu       sync.Mutex
	entries  map[key]*entry
	index    index
	ready    []*entry
	timers   timers
	requests *lane
	events   *lane
	hosts    map[string]*lane
	gone     map[*entry][]stream.Name // cursors to forget
	sweeping bool
}

// key names a subscription.
type key struct {
	scope Scope
	id    string
}

// Open reads the subscriptions of a store. They are looked after by [Engine.Run].
func Open(ctx context.Context, o Options) (*Engine, error) {
	o = o.withDefaults()
	e := &Engine{
		opts: o, hot: o.Hot, log: o.Logger,
		sender:   webhook.New(o.Webhooks),
		signal:   make(chan struct{}, 1),
		entries:  make(map[key]*entry),
		index:    newIndex(),
		requests: &lane{free: o.Requests},
		events:   &lane{free: eventLane},
		hosts:    make(map[string]*lane),
		gone:     make(map[*entry][]stream.Name),
	}
	e.metrics = newMetrics(o.Registerer, e)
	var err error
	if e.keys, err = openKeyring(ctx, o.Hot, o.Random, o.KeyLife); err != nil {
		return nil, err
	}
	return e, e.load()
}

func (e *Engine) load() error {
	v := e.hot.View()
	defer v.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	err := v.Subscriptions(func(s *hot.Subscription) error {
		n, err := newEntry(s)
		if err != nil {
			return err
		}
		if s.Event != 0 {
			_, err := v.Incarnation(s.Event)
			if n.lost = errors.Is(err, stream.ErrNotFound); err != nil && !n.lost {
				return err
			}
		}
		err = v.Links(s.Number, stream.Name{}, func(l hot.Link) (bool, error) {
			if l.Explicit {
				n.explicit[l.Name] = struct{}{}
			}
			return true, nil
		})
		e.insert(n)
		return err
	})
	if err != nil {
		return fmt.Errorf("read subscriptions: %w", err)
	}
	return nil
}

// insert makes a subscription known. The first one has appends tell of themselves.
func (e *Engine) insert(n *entry) {
	e.entries[n.key] = n
	e.index.add(n)
	if len(e.entries) == 1 {
		e.hot.OnGrowth(e.grown)
	}
}

// drop forgets a subscription.
func (e *Engine) drop(n *entry) {
	if n.removed {
		return
	}
	n.removed = true
	delete(e.entries, n.key)
	delete(e.gone, n)
	e.index.remove(n)
	e.timers.set(n, 0)
	if len(e.entries) == 0 {
		e.hot.OnGrowth(nil)
	}
}

// grown is called by the committer for every stream that got bytes or is gone.
func (e *Engine) grown(name stream.Name, gone bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.index.match(name, func(n *entry) {
		if gone {
			e.left(n, name)
		} else {
			e.mark(n, name)
		}
	})
	if gone {
		for n := range e.index.own[name] {
			n.lost = true
			e.look(n)
		}
	}
}

// left remembers that a stream is gone, so that its cursor is forgotten.
func (e *Engine) left(n *entry, name stream.Name) {
	if len(e.gone[n]) < e.opts.Pending {
		e.gone[n] = append(e.gone[n], name)
		e.poke()
	}
}

// mark remembers that a stream may have pending work.
func (e *Engine) mark(n *entry, name stream.Name) {
	if len(n.pending) < e.opts.Pending {
		n.pending[name] = struct{}{}
	} else {
		n.more = true
	}
	e.look(n)
}

// look has the loop look at a subscription.
func (e *Engine) look(n *entry) {
	if n.queued || n.busy || n.waiting || n.sub == nil {
		return
	}
	n.queued = true
	e.ready = append(e.ready, n)
	e.poke()
}

func (e *Engine) poke() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// refresh takes over a newer record of a subscription.
func (e *Engine) refresh(n *entry, s *hot.Subscription) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Revision > n.sub.Revision {
		n.sub = s
	}
	e.look(n)
}

// upkeep is how often signing keys are looked at.
const upkeep = time.Hour

// Run wakes who waits until ctx ends. Requests under way are given up then; their wakes
// are given again at the next start.
func (e *Engine) Run(ctx context.Context) error {
	defer e.sender.Close()
	defer e.work.Wait()
	e.work.Go(func() { e.catchUp(ctx) })
	for {
		wait := min(e.step(ctx), upkeep)
		if err := e.keys.maintain(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("cannot look after the signing keys", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.signal:
		case <-e.opts.After(wait):
		}
	}
}

// step starts what is to be done and returns the time until there may be more.
func (e *Engine) step(ctx context.Context) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.hot.Now()
	for {
		n := e.timers.pop(now)
		if n == nil {
			break
		}
		e.look(n)
	}
	ready := e.ready
	e.ready = nil
	for _, n := range ready {
		n.queued = false
		e.consider(ctx, n, now)
	}
	if len(e.gone) > 0 && !e.sweeping {
		e.sweeping = true
		e.work.Go(func() { e.sweep(ctx) })
	}
	return e.timers.next(now)
}

// consider does what a subscription wants now, or has it looked at later.
func (e *Engine) consider(ctx context.Context, n *entry, now uint64) {
	if n.removed || n.busy || n.waiting || ctx.Err() != nil {
		return
	}
	act, at := n.plan(now)
	if !act {
		e.timers.set(n, at)
		return
	}
	lanes := e.lanes(n)
	for _, l := range lanes {
		if l.free == 0 {
			n.waiting = true
			l.waiting = append(l.waiting, n)
			return
		}
	}
	for _, l := range lanes {
		l.free--
	}
	if !n.sub.Pull {
		e.hosts[n.host] = lanes[0]
	}
	n.busy = true
	e.work.Go(func() {
		e.wake(ctx, n)
		e.finish(ctx, n, lanes)
	})
}

// finish gives the places in lanes to those who wait for them.
func (e *Engine) finish(ctx context.Context, n *entry, lanes []*lane) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n.busy = false
	e.look(n)
	now := e.hot.Now()
	for _, l := range lanes {
		l.free++
	}
	for _, l := range lanes {
		for l.free > 0 && len(l.waiting) > 0 {
			next := l.waiting[0]
			l.waiting = l.waiting[1:]
			next.waiting = false
			e.consider(ctx, next, now) // it may wait in another lane
		}
	}
	if h := e.hosts[n.host]; h != nil && h.free == e.opts.RequestsPerHost && len(h.waiting) == 0 {
		delete(e.hosts, n.host)
	}
}

// lane bounds how many do something at a time.
type lane struct {
	free    int
	waiting []*entry
}

// lanes are those that a wake goes by. That of a host is kept while it is in use.
func (e *Engine) lanes(n *entry) []*lane {
	if n.sub.Pull {
		return []*lane{e.events}
	}
	host := e.hosts[n.host]
	if host == nil {
		host = &lane{free: e.opts.RequestsPerHost}
	}
	return []*lane{host, e.requests}
}

// find returns a subscription and its record. Errors: [ErrNotFound].
func (e *Engine) find(scope Scope, id string) (*entry, *hot.Subscription, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.entries[key{scope, id}]
	if n == nil || n.sub == nil {
		return nil, nil, ErrNotFound
	}
	return n, n.sub, nil
}

// translate turns errors of the store into those of this package.
func translate(err error) error {
	switch {
	case errors.Is(err, hot.ErrNoSubscription):
		return ErrNotFound
	case errors.Is(err, hot.ErrFenced):
		return ErrFenced
	}
	return err
}
