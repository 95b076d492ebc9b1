package scrub

import (
	"sync"
	"time"
)

const (
	// maxSuspects bounds how many wait, and how many are remembered.
	maxSuspects = 1000
	// again is after what time one that was looked at may be looked at again.
	again = time.Minute
)

// suspects are objects that a read has found missing or damaged.
type suspects struct {
	wake chan struct{} // takes a value when one was added

	mu      sync.Mutex // guards what follows
	waiting map[string]bool
	looked  map[string]time.Time
}

// Suspect has an object looked at at once. It is for who has found it missing or
// damaged, and never waits.
func (s *Scrubber) Suspect(key string) {
	p, now := &s.suspects, s.opts.Now()
	p.mu.Lock()
	last, known := p.looked[key]
	news := !p.waiting[key] && len(p.waiting) < maxSuspects && (!known || now.Sub(last) >= again)
	if news {
		if p.waiting == nil {
			p.waiting = make(map[string]bool)
		}
		p.waiting[key] = true
	}
	p.mu.Unlock()
	if news {
		p.ring()
	}
}

func (p *suspects) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// take returns one of them.
func (p *suspects) take(now time.Time) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range p.waiting {
		delete(p.waiting, key)
		if p.looked == nil || len(p.looked) >= maxSuspects {
			p.looked = make(map[string]time.Time)
		}
		p.looked[key] = now
		return key, true
	}
	return "", false
}
