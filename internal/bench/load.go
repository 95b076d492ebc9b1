package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Worker is one client: it does one operation after another.
type Worker interface {
	// Do does one operation, checks its outcome, and returns the records and the bytes
	// of payload that it carried.
	Do() (records, bytes int64, err error)
	Close()
}

// afterError keeps a client whose server is gone from asking it as fast as it can.
const afterError = 10 * time.Millisecond

// closedLoop loads with clients that begin an operation when the one before is done. It is for
// throughput: a server that stalls is asked less, so the latencies are those of the
// operations, not those of somebody who comes at any time.
func closedLoop(ctx context.Context, workers []Worker, warm, interval time.Duration) Sample {
	start := time.Now().Add(warm)
	end := start.Add(interval)
	return gather(workers, func(w Worker, s *Sample) {
		var first, last time.Time
		var records, bytes int64
		for ctx.Err() == nil {
			began := time.Now()
			// An operation may be longer than the interval: one at least counts.
			if !began.Before(end) && s.Ops+s.Errors > 0 {
				break
			}
			r, b, err := w.Do()
			done := time.Now()
			if err != nil {
				if ctx.Err() == nil {
					s.Errors++
					s.Error = err
					pause(ctx, afterError)
				}
				continue
			}
			if began.Before(start) {
				continue
			}
			if first.IsZero() {
				first = began
			}
			last = done
			s.Ops++
			records += r
			bytes += b
			s.Latency.Record(done.Sub(began))
		}
		// Each client's own time: an operation that begins before the end is counted
		// whole, however long it takes.
		if busy := last.Sub(first).Seconds(); busy > 0 {
			s.Rate, s.Records, s.Bytes = float64(s.Ops)/busy, float64(records)/busy, float64(bytes)/busy
		}
	})
}

// openLoop loads at a fixed rate of operations a second, whatever the server does. Latencies
// are counted from when an operation was to begin, so that those that would have come
// during a stall count too, and not just the one that met it.
func openLoop(ctx context.Context, workers []Worker, perSecond float64, warm, interval time.Duration) Sample {
	begin := time.Now()
	start := begin.Add(warm)
	end := start.Add(interval)
	var tickets atomic.Int64
	all := gather(workers, func(w Worker, s *Sample) {
		for ctx.Err() == nil {
			intended := begin.Add(time.Duration(float64(tickets.Add(1)-1) / perSecond * float64(time.Second)))
			if !intended.Before(end) {
				return
			}
			pause(ctx, time.Until(intended))
			if ctx.Err() != nil {
				return
			}
			r, b, err := w.Do()
			took := time.Since(intended)
			switch {
			case err != nil:
				if ctx.Err() == nil {
					s.Errors++
					s.Error = err
				}
			case !intended.Before(start):
				s.Ops++
				s.Records += float64(r)
				s.Bytes += float64(b)
				s.Latency.Record(took)
			}
		}
	})
	// A server that is behind takes longer than the interval for what was to happen in it.
	// One that was interrupted has done what it has in less.
	wall := time.Since(start)
	if ctx.Err() == nil {
		wall = max(wall, interval)
	}
	seconds := wall.Seconds()
	all.Rate, all.Records, all.Bytes = float64(all.Ops)/seconds, all.Records/seconds, all.Bytes/seconds
	return all
}

// gather runs one function a worker and adds up what they did.
func gather(workers []Worker, run func(Worker, *Sample)) Sample {
	samples := make([]Sample, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		samples[i].Latency = NewLatency()
		wg.Go(func() { run(w, &samples[i]) })
	}
	wg.Wait()
	all := Sample{Latency: NewLatency()}
	for _, s := range samples {
		all.Ops += s.Ops
		all.Rate += s.Rate
		all.Records += s.Records
		all.Bytes += s.Bytes
		all.Latency.Merge(s.Latency)
		all.Errors += s.Errors
		if s.Error != nil {
			all.Error = s.Error
		}
	}
	return all
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
