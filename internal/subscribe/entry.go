package subscribe

import (
	"net/url"
	"strings"

	"firn/internal/subscribe/glob"
	"firn/pkg/stream"
	"firn/tier/hot"
)

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

	// lost: the stream that had the event of its wake may be gone, so that nobody
	// learns of the wake.
	lost bool

	queued  bool // among those that the loop looks at
	waiting bool // in a lane
	busy    bool // being woken
	removed bool
	// due is the time (ms) of its timer, 0 for none, and place where it is among the
	// timers. rest is when it may be tried again after trouble of the server's own.
	due   uint64
	place int
	rest  uint64

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
		n.host = hostOf(u)
	}
	return n, nil
}

// hostOf is the host and port of a receiver, however they are spelt.
func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") + " " + port
}

// plan decides whether the subscription is to be woken at now, or else when to look
// again: 0 is not before something happens.
func (n *entry) plan(now uint64) (act bool, at uint64) {
	s := n.sub
	// A webhook that was never confirmed and that nobody is sending is lost, too.
	if s.Woken(now) && (s.Delivered || s.Pull && !n.lost) {
		return false, s.LeaseUntil
	}
	if len(n.pending) == 0 && !n.more {
		return false, 0
	}
	at = n.rest
	// A retry that is further away than any was planned by a clock that was ahead.
	if s.NextAttempt > now && s.NextAttempt-now <= uint64(lastRetry.Milliseconds()) {
		at = max(at, s.NextAttempt)
	}
	return at <= now, at
}

// matched reports whether the pattern links a stream.
func (n *entry) matched(name stream.Name) bool {
	return name != n.own && n.scope.matches(n.pattern, name)
}

// index finds the subscriptions that a stream belongs to.
type index struct {
	flat, bucketed glob.Index[*entry]
	explicit       byName
	own            byName // the pull-wakes by their wake streams
}

// byName is what belongs to single streams.
type byName map[stream.Name]map[*entry]struct{}

func newIndex() index { return index{explicit: make(byName), own: make(byName)} }

func (x *index) add(n *entry) {
	x.globs(n.scope).Add(n.pattern, n)
	for name := range n.explicit {
		x.explicit.add(name, n)
	}
	if n.own != (stream.Name{}) {
		x.own.add(n.own, n)
	}
}

func (x *index) remove(n *entry) {
	x.globs(n.scope).Remove(n.pattern, n)
	for name := range n.explicit {
		x.explicit.remove(name, n)
	}
	x.own.remove(n.own, n)
}

func (x *index) globs(s Scope) *glob.Index[*entry] {
	if s == Flat {
		return &x.flat
	}
	return &x.bucketed
}

func (b byName) add(name stream.Name, n *entry) {
	if b[name] == nil {
		b[name] = make(map[*entry]struct{})
	}
	b[name][n] = struct{}{}
}

func (b byName) remove(name stream.Name, n *entry) {
	delete(b[name], n)
	if len(b[name]) == 0 {
		delete(b, name)
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
