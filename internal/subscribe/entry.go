package subscribe

import (
	"container/heap"
	"math"
	"net/url"
	"time"

	"firn/internal/subscribe/glob"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// maxPending bounds the streams that are remembered as pending for one subscription.
// Further ones are looked for when these are done.
const maxPending = 4096

// entry is a subscription in memory. Engine.mu guards it.
type entry struct {
	key
	pattern glob.Pattern
	own     stream.Name // its wake stream, which it does not wait for
	host    string      // of its receiver

	// sub is the latest known record, nil until the first commit.
	sub      *hot.Subscription
	explicit map[stream.Name]struct{}
	// pending are streams that may have pending work; with more there may be others.
	pending map[stream.Name]struct{}
	more    bool
	// unknown: streams that grew before this start have not been looked for.
	unknown bool

	queued  bool // among those that the loop looks at
	waiting bool // in a lane
	busy    bool // being woken
	removed bool
	// due is the time (ms) of its timer, rest when it may be tried again after
	// trouble of the server's own.
	due, rest uint64

	// collecting: the pending ones are being looked through. Unlike the rest it is held
	// over reads.
	collecting chan struct{}
}

// newEntry makes the entry of a record.
func newEntry(s *hot.Subscription) (*entry, error) {
	n := &entry{
		key: key{Scope(s.Scope), s.ID}, sub: s, own: s.WakeStream, unknown: true,
		explicit: make(map[stream.Name]struct{}), pending: make(map[stream.Name]struct{}),
		collecting: make(chan struct{}, 1),
	}
	if s.Pattern != "" {
		p, err := glob.Parse(s.Pattern)
		if err != nil {
			return nil, err
		}
		n.pattern = p
	}
	if u, err := url.Parse(s.URL); err == nil {
		n.host = u.Host
	}
	return n, nil
}

// plan decides whether the subscription is to be woken at now, or else when to look
// again: 0 is not before something happens.
func (n *entry) plan(now uint64) (act bool, at uint64) {
	s := n.sub
	// A webhook that was never confirmed and that nobody is sending is lost.
	if s.Woken(now) && (s.Pull || s.Delivered) {
		return false, s.LeaseUntil
	}
	if len(n.pending) == 0 && !n.more {
		return false, 0
	}
	if at := max(s.NextAttempt, n.rest); at > now {
		return false, at
	}
	return true, 0
}

// matched reports whether the pattern links a stream.
func (n *entry) matched(name stream.Name) bool {
	return name != n.own && n.scope.matches(n.pattern, name)
}

// index finds the subscriptions that a stream belongs to.
type index struct {
	flat, bucketed glob.Index[*entry]
	explicit       map[stream.Name]map[*entry]struct{}
}

func newIndex() index { return index{explicit: make(map[stream.Name]map[*entry]struct{})} }

func (x *index) add(n *entry) {
	x.globs(n.scope).Add(n.pattern, n)
	for name := range n.explicit {
		x.link(n, name)
	}
}

func (x *index) remove(n *entry) {
	x.globs(n.scope).Remove(n.pattern, n)
	for name := range n.explicit {
		x.unlink(n, name)
	}
}

func (x *index) globs(s Scope) *glob.Index[*entry] {
	if s == Flat {
		return &x.flat
	}
	return &x.bucketed
}

func (x *index) link(n *entry, name stream.Name) {
	if x.explicit[name] == nil {
		x.explicit[name] = make(map[*entry]struct{})
	}
	x.explicit[name][n] = struct{}{}
}

func (x *index) unlink(n *entry, name stream.Name) {
	delete(x.explicit[name], n)
	if len(x.explicit[name]) == 0 {
		delete(x.explicit, name)
	}
}

// match calls fn for the subscriptions of a stream, for some of them twice.
func (x *index) match(name stream.Name, fn func(*entry)) {
	for n := range x.explicit[name] {
		fn(n)
	}
	each := func(n *entry) {
		if name != n.own {
			fn(n)
		}
	}
	if path, ok := Flat.Path(name); ok {
		x.flat.Match(path, each)
	}
	if x.bucketed.Empty() {
		return
	}
	if path, ok := Bucketed.Path(name); ok {
		x.bucketed.Match(path, each)
	}
}

// timers says when to look at subscriptions again. A later call of set makes an earlier
// one void.
type timers []timer

type timer struct {
	at uint64 // ms
	n  *entry
}

func (t *timers) set(n *entry, at uint64) {
	if at == n.due {
		return
	}
	if n.due = at; at != 0 {
		heap.Push(t, timer{at, n})
	}
}

// pop returns a subscription whose time has come, nil when there is none.
func (t *timers) pop(now uint64) *entry {
	for len(*t) > 0 && (*t)[0].at <= now {
		top := heap.Pop(t).(timer)
		if top.n.due == top.at && !top.n.removed {
			top.n.due = 0
			return top.n
		}
	}
	return nil
}

// next is the time until the first one is due.
func (t timers) next(now uint64) time.Duration {
	if len(t) == 0 {
		return math.MaxInt64
	}
	return time.Duration(t[0].at-now) * time.Millisecond
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }

func (t *timers) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}
