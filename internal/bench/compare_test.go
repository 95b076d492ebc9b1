package bench_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"firn/internal/bench"
)

// The sides take turns, backwards every other round.
func TestSidesTakeTurns(t *testing.T) {
	var order []string
	var sides []bench.Side
	for i, name := range []string{"a", "b", "c"} {
		sides = append(sides, bench.Side{Name: name, Measure: func(_ context.Context, warm, interval time.Duration) (bench.Sample, error) {
			if warm != time.Second || interval != 2*time.Second {
				t.Errorf("warm %s, interval %s", warm, interval)
			}
			order = append(order, name)
			return bench.One(time.Duration(i+1)*time.Second, int64(len(order))), nil
		}})
	}
	samples, err := bench.Compare(t.Context(), sides, bench.Options{Rounds: 3, Warm: time.Second, Interval: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "c", "b", "a", "a", "b", "c"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	for i, of := range samples {
		for _, s := range of {
			if s.Rate != 1/float64(i+1) {
				t.Errorf("side %d has a sample of another: %v", i, s.Rate)
			}
		}
	}
}

func TestCompareEnds(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		measure func() error
		want    error
	}{
		{func() error { return broken }, broken},
		{func() error { cancel(); return nil }, context.Canceled},
	} {
		n := 0
		_, err := bench.Compare(ctx, []bench.Side{{Name: "a", Measure: func(context.Context, time.Duration, time.Duration) (bench.Sample, error) {
			n++
			return bench.One(1, 1), c.measure()
		}}}, bench.Options{Rounds: 3})
		if !errors.Is(err, c.want) || n != 1 {
			t.Errorf("%v after %d rounds, want %v", err, n, c.want)
		}
	}
}

// Ratios are of the pairs of a round, so that noise that hits a whole round hits none.
func TestRatioOfPairs(t *testing.T) {
	at := func(rates ...float64) []bench.Sample {
		samples := make([]bench.Sample, len(rates))
		for i, r := range rates {
			samples[i].Rate = r
		}
		return samples
	}
	f := bench.Ratio(at(50, 5, 60), at(100, 10, 100))
	if f.Median != .5 || f.Low != .5 || f.High != .6 {
		t.Errorf("%+v", f)
	}
	if f := bench.Ratio(at(50, 5), at(100, 10)); f.Median != .5 {
		t.Errorf("of an even number: %+v", f)
	}
	if f := bench.Ratio(at(50), at(0)); f.Median != 0 {
		t.Errorf("of a side that did nothing: %+v", f)
	}
}

func TestTargetsAtTheirEdge(t *testing.T) {
	of := func(v float64) bench.Figure { return bench.Figure{Spread: bench.Spread{Median: v}} }
	if !of(.75).AtLeast(.75).Target.Met || of(.749).AtLeast(.75).Target.Met {
		t.Error("at least")
	}
	if !of(2).AtMost(2).Target.Met || of(2.001).AtMost(2).Target.Met {
		t.Error("at most")
	}
}
