package clienttest

import (
	"net/http"
	"sync"
)

// gate knows which requests are under way: those of a connection that was closed may
// still be.
type gate struct {
	next http.Handler

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	g.running.Add(1)
	g.mu.Unlock()
	defer g.running.Done()
	g.next.ServeHTTP(w, r)
}

// close lets nobody in any more and waits for those inside.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.running.Wait()
}
