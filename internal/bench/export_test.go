package bench

import (
	"context"
	"time"
)

// ClosedLoop and OpenLoop are the two ways to load.
var (
	ClosedLoop = closedLoop
	OpenLoop   = openLoop
)

// Compare runs a comparison of sides.
func Compare(ctx context.Context, sides []Side, o Options) ([][]Sample, error) {
	return (&comparison{sides: sides}).run(ctx, o, func(string) {})
}

// Ratio is of rates.
func Ratio(of, to []Sample) Figure { return ratio("ratio", of, to, rate) }

// One is the sample of a single operation.
func One(took time.Duration, bytes int64) Sample { return one(took, bytes) }

// Summarize is what a report has of a side.
func Summarize(name string, samples []Sample) SideResult { return sideResult(name, samples) }

// AtLeast and AtMost set a target.
func (f Figure) AtLeast(v float64) Figure { return f.atLeast(v) }

// AtMost sets a target.
func (f Figure) AtMost(v float64) Figure { return f.atMost(v) }

// PayloadRecords are n records of a size as one append carries them, and what is stored.
func PayloadRecords(json bool, n, size int) ([]byte, int64) {
	contentType := typeBytes
	if json {
		contentType = typeJSON
	}
	return newPayload(contentType).records(n, size)
}

// Audience checks what one reader is given, and returns the sample and whether all of
// want messages came in order.
func Audience(want int64, texts ...[]byte) Sample {
	a := &audience{latencies: []*Latency{NewLatency()}, seen: []int64{0}}
	for _, t := range texts {
		a.receive(0, t)
	}
	return a.sample(want, time.Second, make(chan error, 1))
}

// Message is the n-th of a fan-out.
var Message = message
