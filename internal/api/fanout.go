package api

import (
	"sync"

	"firn/pkg/stream"
)

const (
	// sharedBytes bounds the data of an event that is kept for others.
	sharedBytes = 64 << 10
	// sharedEvents bounds how many are kept: some 11 MiB at most, as base64.
	sharedEvents = 128
)

// eventKey names an encoded event. The bytes of a range never change within one
// incarnation, and its encoding is fixed.
type eventKey struct {
	id       stream.ID
	from     uint64
	next     uint64
	cursor   int64
	upToDate bool
	closed   bool
}

// fanout encodes once what many readers of one stream are about to be sent. It keeps
// the events of the last moments, oldest out first.
type fanout struct {
	mu     sync.Mutex
	events map[eventKey]*sharedEvent // guarded by mu
	order  [sharedEvents]eventKey    // guarded by mu: a ring of the keys in events
	oldest int                       // guarded by mu
}

type sharedEvent struct {
	once  sync.Once
	bytes []byte
}

func newFanout() *fanout {
	return &fanout{events: make(map[eventKey]*sharedEvent, sharedEvents)}
}

// event returns the event of a key, which encode makes when it is not there. Readers
// that ask at the same time wait for the first one. The bytes are shared: read only.
func (f *fanout) event(k eventKey, encode func() []byte) []byte {
	f.mu.Lock()
	e, ok := f.events[k]
	if !ok {
		e = new(sharedEvent)
		if len(f.events) == sharedEvents {
			delete(f.events, f.order[f.oldest])
		}
		f.order[f.oldest], f.events[k] = k, e
		f.oldest = (f.oldest + 1) % sharedEvents
	}
	f.mu.Unlock()
	e.once.Do(func() { e.bytes = encode() })
	return e.bytes
}
