package bench_test

import (
	"testing"
	"time"

	"firn/internal/bench"
)

func TestLatency(t *testing.T) {
	l := bench.NewLatency()
	if l.At(99) != 0 || l.Count() != 0 {
		t.Errorf("an empty one has %s of %d", l.At(99), l.Count())
	}
	other := bench.NewLatency()
	for i := range 1000 {
		to := l
		if i%2 == 0 {
			to = other
		}
		to.Record(time.Duration(i+1) * time.Millisecond)
	}
	l.Merge(other)
	for percent, want := range map[float64]time.Duration{50: 500, 90: 900, 99: 990, 99.9: 999} {
		if got := l.At(percent); !within(float64(got), float64(want*time.Millisecond)) {
			t.Errorf("p%v is %s, want %d ms", percent, got, want)
		}
	}
	l.Record(time.Hour)
	l.Record(-time.Second)
	if l.Count() != 1002 || !within(float64(l.Max()), float64(2*time.Minute)) {
		t.Errorf("%d, the longest %s", l.Count(), l.Max())
	}
}
