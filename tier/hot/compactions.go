package hot

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions says when Pebble may compact. Its own scheduler lets one begin as soon as
// the logs have been read again, and then [pebble.Open] waits for the end of it: every
// other start of a store with a million streams took 300 ms more. This one has them wait
// for the start instead. After it, the limit is Pebble's own.
//
// It calls the database from one goroutine alone, and has no lock that could be taken in
// another order than the database's.
type compactions struct {
	db      pebble.DBForCompaction
	open    atomic.Bool   // compactions may begin
	running atomic.Int64  // those that were granted
	poke    chan struct{} // one may be granted that was refused before
	quit    chan struct{}
	ended   chan struct{} // nil before begin
}

var (
	_ pebble.CompactionScheduler   = (*compactions)(nil)
	_ pebble.CompactionGrantHandle = (*compactions)(nil)
)

func newCompactions() *compactions {
	return &compactions{poke: make(chan struct{}, 1), quit: make(chan struct{})}
}

// Register implements [pebble.CompactionScheduler].
func (c *compactions) Register(_ int, db pebble.DBForCompaction) { c.db = db }

// begin lets compactions begin. It is called once, with a database that is open.
func (c *compactions) begin() {
	c.open.Store(true)
	c.ended = make(chan struct{})
	go c.grant()
	c.again()
}

// Unregister implements [pebble.CompactionScheduler].
func (c *compactions) Unregister() {
	c.open.Store(false)
	if c.ended != nil {
		close(c.quit)
		<-c.ended
	}
}

// TrySchedule implements [pebble.CompactionScheduler].
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if c.take() {
		return true, c
	}
	// grant may have had the last place for a moment, only to find that nobody waits.
	c.again()
	return false, nil
}

// take takes one of the places if there is one left.
func (c *compactions) take() bool {
	if !c.open.Load() {
		return false
	}
	if c.running.Add(1) <= int64(c.db.GetAllowedWithoutPermission()) {
		return true
	}
	c.running.Add(-1)
	return false
}

// grant lets those begin that were refused before.
func (c *compactions) grant() {
	defer close(c.ended)
	for {
		select {
		case <-c.quit:
			return
		case <-c.poke:
		}
		for c.take() {
			if waiting, _ := c.db.GetWaitingCompaction(); !waiting || !c.db.Schedule(c) {
				c.running.Add(-1)
				break
			}
		}
	}
}

func (c *compactions) again() {
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// UpdateGetAllowedWithoutPermission implements [pebble.CompactionScheduler].
func (c *compactions) UpdateGetAllowedWithoutPermission() { c.again() }

// Started implements [pebble.CompactionGrantHandle].
func (c *compactions) Started() {}

// MeasureCPU implements [pebble.CompactionGrantHandle].
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements [pebble.CompactionGrantHandle].
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Done implements [pebble.CompactionGrantHandle].
func (c *compactions) Done() {
	c.running.Add(-1)
	c.again()
}
