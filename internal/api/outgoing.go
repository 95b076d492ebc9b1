package api

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// smallAnswer is what an answer may hold without being counted.
const smallAnswer = 64 << 10

// outgoing bounds the memory of answers to reads that clients are slow to take, for
// all together. Small ones are not counted: their number is that of connections.
type outgoing struct {
	limit int64
	room  *semaphore.Weighted
	wait  time.Duration
}

func newOutgoing(limit int64, wait time.Duration) *outgoing {
	return &outgoing{limit: limit, room: semaphore.NewWeighted(limit), wait: wait}
}

// take waits for room for n bytes, which release gives back. Errors: errOutgoing, that
// of ctx.
func (o *outgoing) take(ctx context.Context, n int) (release func(), err error) {
	if n <= smallAnswer {
		return func() {}, nil
	}
	size := min(int64(n), o.limit)
	if !o.room.TryAcquire(size) {
		patience, cancel := context.WithTimeout(ctx, o.wait)
		defer cancel()
		if o.room.Acquire(patience, size) != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, errOutgoing
		}
	}
	return func() { o.room.Release(size) }, nil
}
