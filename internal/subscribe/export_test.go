package subscribe

// Busy tells how many wakes are under way, those of deleted subscriptions included, and
// whether nothing else is to be done before something happens or time passes.
func (e *Engine) Busy() (n int, quiet bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	quiet = len(e.signal) == 0 && len(e.ready) == 0 && len(e.gone) == 0 && !e.sweeping
	now := e.hot.Now()
	for _, s := range e.entries {
		if act, _ := s.plan(now); !s.busy && (s.unknown || act && !s.waiting) {
			quiet = false
		}
	}
	return e.opts.Requests - e.requests.free + eventLane - e.events.free, quiet
}

// Pending is how many streams are remembered as pending for a subscription.
func (e *Engine) Pending(scope Scope, id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.entries[key{scope, id}].pending)
}

// Timers is how many timers are set.
func (e *Engine) Timers() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.timers)
}

// Hosts is how many hosts have a lane.
func (e *Engine) Hosts() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.hosts)
}

// Defaults are the options that the zero Options stand for.
func Defaults() Options { return Options{}.withDefaults() }

const TokenLife = tokenLife
