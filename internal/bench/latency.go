package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is a histogram of durations, from a microsecond to two minutes, with two
// significant digits. It is for one goroutine.
type Latency struct{ h *hdrhistogram.Histogram }

const (
	shortest = time.Microsecond
	longest  = 2 * time.Minute
)

// NewLatency returns an empty histogram.
func NewLatency() *Latency {
	return &Latency{hdrhistogram.New(int64(shortest), int64(longest), 2)}
}

// Record adds a duration; one that is longer than two minutes counts as two minutes.
func (l *Latency) Record(d time.Duration) {
	// Within the bounds of the histogram it has no errors.
	_ = l.h.RecordValue(int64(min(max(d, 0), longest)))
}

// Merge adds what another histogram has.
func (l *Latency) Merge(other *Latency) { l.h.Merge(other.h) }

// Count is how many durations there are.
func (l *Latency) Count() int64 { return l.h.TotalCount() }

// At returns the duration that the given percent of all do not exceed, 0 of none.
func (l *Latency) At(percent float64) time.Duration {
	if l.Count() == 0 {
		return 0
	}
	return time.Duration(l.h.ValueAtPercentile(percent))
}

// Max returns the longest.
func (l *Latency) Max() time.Duration { return time.Duration(l.h.Max()) }
