package bench

import (
	"context"
	"fmt"
	"time"
)

// Side is one of those that take turns.
type Side struct {
	Name string
	// Measure loads the side once. Errors that are no fault of the side end the run.
	Measure func(ctx context.Context, warm, interval time.Duration) (Sample, error)
	// Close gives up what the side holds; may be nil.
	Close func()
}

// closedSide is loaded by clients that wait for their answers.
func closedSide(name string, workers []Worker) Side {
	return Side{name, func(ctx context.Context, warm, interval time.Duration) (Sample, error) {
		return closedLoop(ctx, workers, warm, interval), nil
	}, func() { closeAll(workers) }}
}

func closeAll(workers []Worker) {
	for _, w := range workers {
		w.Close()
	}
}

// comparison is what a case sets up: sides, of which the first is the server, and what is
// made of their samples.
type comparison struct {
	sides   []Side
	figures func(rounds [][]Sample) []Figure // by side, then by round
	close   func()                           // may be nil
}

func (c *comparison) end() {
	for _, s := range c.sides {
		if s.Close != nil {
			s.Close()
		}
	}
	if c.close != nil {
		c.close()
	}
}

// run lets the sides take turns. Every other round goes backwards, so that no side
// always comes behind the same one. The samples are by side, then by round.
func (c *comparison) run(ctx context.Context, o Options, tell func(string)) ([][]Sample, error) {
	samples := make([][]Sample, len(c.sides))
	for round := range o.Rounds {
		for i := range c.sides {
			if round%2 == 1 {
				i = len(c.sides) - 1 - i
			}
			side := c.sides[i]
			s, err := side.Measure(ctx, o.Warm, o.Interval)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", side.Name, err)
			}
			samples[i] = append(samples[i], s)
			tell(fmt.Sprintf("round %d of %d: %s %s/s, p99 %s", round+1, o.Rounds, side.Name, count(s.Rate), s.Latency.At(99)))
		}
	}
	return samples, nil
}

// ratio is what the pairs of one round have of each other: noise that lasts longer than a
// round hits both.
func ratio(name string, of, to []Sample, value func(Sample) float64) Figure {
	var ratios []float64
	for i := range min(len(of), len(to)) {
		if v := value(to[i]); v > 0 {
			ratios = append(ratios, value(of[i])/v)
		}
	}
	return Figure{Name: name, Spread: spread(ratios)}
}
