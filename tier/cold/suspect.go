package cold

import (
	"sync"
	"time"
)

const (
	// quiet is how long an object that was logged is not logged again.
	quiet = 10 * time.Minute
	// maxSuspects bounds how many logged objects are remembered.
	maxSuspects = 4096
)

// suspects are objects that a read has found missing or damaged.
type suspects struct {
	mu     sync.Mutex // guards what follows
	tell   func(key string)
	logged map[string]time.Time
}

// OnSuspect has fn called with the key of each object that a read has found missing or
// damaged, also when it was before. It proves nothing: the reader may hold an old
// record, or the transfer was bad. Readers wait for fn, which must be quick.
func (s *Store) OnSuspect(fn func(key string)) {
	s.suspects.mu.Lock()
	defer s.suspects.mu.Unlock()
	s.suspects.tell = fn
}

// suspect tells of an object. Readers come again and again, so it is logged once in a
// while.
func (s *Store) suspect(key, message string, args ...any) {
	p, now := &s.suspects, s.opts.Now()
	p.mu.Lock()
	last, known := p.logged[key]
	log := !known || now.Sub(last) >= quiet
	if log {
		if p.logged == nil || len(p.logged) >= maxSuspects {
			p.logged = make(map[string]time.Time)
		}
		p.logged[key] = now
	}
	tell := p.tell
	p.mu.Unlock()
	if log {
		s.log.Error(message, append([]any{"key", key}, args...)...)
	}
	if tell != nil {
		tell(key)
	}
}
