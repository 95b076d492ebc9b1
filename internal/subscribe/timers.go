package subscribe

import (
	"container/heap"
	"math"
	"time"
)

// timers says when to look at subscriptions again: a heap of them by the time that they
// are due, each at most once, however often its time is moved.
type timers []*entry

// set gives a subscription its time (ms), 0 for none.
func (t *timers) set(n *entry, at uint64) {
	switch {
	case at == n.due:
	case n.due == 0:
		n.due = at
		heap.Push(t, n)
	case at == 0:
		heap.Remove(t, n.place)
		n.due = 0
	default:
		n.due = at
		heap.Fix(t, n.place)
	}
}

// pop returns a subscription whose time has come, nil when there is none.
func (t *timers) pop(now uint64) *entry {
	if len(*t) == 0 || (*t)[0].due > now {
		return nil
	}
	n := heap.Pop(t).(*entry)
	n.due = 0
	return n
}

// next is the time until the first one is due.
func (t timers) next(now uint64) time.Duration {
	switch {
	case len(t) == 0:
		return math.MaxInt64
	case t[0].due <= now:
		return 0
	}
	return time.Duration(t[0].due-now) * time.Millisecond
}

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].due < t[j].due }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}

func (t *timers) Push(x any) {
	n := x.(*entry)
	n.place = len(*t)
	*t = append(*t, n)
}

func (t *timers) Pop() any {
	last := len(*t) - 1
	n := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return n
}
