package bench_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"firn/internal/bench"
)

// worker takes a time for each operation.
type worker struct {
	took func(n int) time.Duration
	err  error
	n    int
}

func (w *worker) Do() (records, bytes int64, err error) {
	<-time.After(w.took(w.n)) // the time of a bubble
	w.n++
	return 2, 100, w.err
}

func (w *worker) Close() {}

// within tells whether a figure is right to a few percent.
func within(got, want float64) bool { return got > want*.97 && got < want*1.03 }

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Two clients of different speed; the warm-up does not count.
		workers := []bench.Worker{&worker{took: always(time.Millisecond)}, &worker{took: always(4 * time.Millisecond)}}
		began := time.Now()
		s := bench.ClosedLoop(t.Context(), workers, 200*time.Millisecond, time.Second)
		if took := time.Since(began); took < 1200*time.Millisecond || took > 1210*time.Millisecond {
			t.Errorf("it took %s", took)
		}
		if !within(float64(s.Ops), 1250) || !within(s.Rate, 1250) || !within(s.Records, 2500) || !within(s.Bytes, 125000) {
			t.Errorf("%+v", s)
		}
		if p50, p99 := s.Latency.At(50), s.Latency.At(99); !within(float64(p50), 1e6) || !within(float64(p99), 4e6) {
			t.Errorf("p50 %s, p99 %s", p50, p99)
		}
	})
}

// An operation that is longer than the interval counts by the time that it takes.
func TestClosedLoopOfLongOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bench.ClosedLoop(t.Context(), []bench.Worker{&worker{took: always(3 * time.Second)}}, 200*time.Millisecond, time.Second)
		if s.Ops != 1 || !within(s.Rate, 1./3) {
			t.Errorf("%+v", s)
		}
	})
}

func TestLoadCountsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		workers := []bench.Worker{&worker{took: always(time.Millisecond), err: broken}, &worker{took: always(time.Millisecond)}}
		for _, s := range []bench.Sample{
			bench.ClosedLoop(t.Context(), workers, 0, time.Second),
			bench.OpenLoop(t.Context(), workers, 100, 0, time.Second),
		} {
			if s.Errors < 40 || !errors.Is(s.Error, broken) || s.Latency.Count() != s.Ops || s.Ops == 0 {
				t.Errorf("%d errors, %v; %d operations, %d latencies", s.Errors, s.Error, s.Ops, s.Latency.Count())
			}
		}
	})
}

// A server that stands still for a second of ten harms a tenth of those who come at their
// own time, though only one of them finds it standing.
func TestOpenLoopCountsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stall := func(n int) time.Duration {
			if n == 500 {
				return time.Second
			}
			return time.Millisecond
		}
		s := bench.OpenLoop(t.Context(), []bench.Worker{&worker{took: stall}}, 100, 0, 10*time.Second)
		if s.Ops != 1000 || !within(s.Rate, 100) {
			t.Errorf("%d operations at %v/s", s.Ops, s.Rate)
		}
		// After the stall the client catches up, an operation a millisecond: of the 100
		// that were to begin in it, those in the middle have waited for about half of it.
		if p50, p90, p95 := s.Latency.At(50), s.Latency.At(90), s.Latency.At(95); !within(float64(p50), 1e6) || p90 < 50*time.Millisecond || p95 < 500*time.Millisecond {
			t.Errorf("p50 %s, p90 %s, p95 %s", p50, p90, p95)
		}
		blind := bench.ClosedLoop(t.Context(), []bench.Worker{&worker{took: stall}}, 0, 10*time.Second)
		if p99 := blind.Latency.At(99); !within(float64(p99), 1e6) {
			t.Errorf("the closed loop has a p99 of %s: the test shows nothing", p99)
		}
	})
}

// The schedule goes on whatever the number of clients, and a server that is too slow is
// not counted as one that keeps up.
func TestOpenLoopBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bench.OpenLoop(t.Context(), []bench.Worker{&worker{took: always(20 * time.Millisecond)}}, 100, 0, time.Second)
		if s.Ops != 100 || !within(s.Rate, 50) || !within(float64(s.Latency.Max()), float64(time.Second)) {
			t.Errorf("%d operations at %v/s, the longest %s", s.Ops, s.Rate, s.Latency.Max())
		}
	})
}

// An interrupt is no error of the server, and ends a load at once.
func TestLoadEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		w := []bench.Worker{&worker{took: always(time.Millisecond)}}
		closed := bench.ClosedLoop(ctx, w, 0, time.Hour)
		open := bench.OpenLoop(ctx, w, 10, 0, time.Hour)
		if closed.Errors+open.Errors > 0 || closed.Ops < 45 || time.Since(began) > 60*time.Millisecond {
			t.Errorf("%+v, %+v after %s", closed, open, time.Since(began))
		}
	})
}
