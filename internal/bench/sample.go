package bench

import (
	"slices"
	"time"
)

// Sample is what one side did in one round.
type Sample struct {
	Ops     int64   // operations that succeeded
	Rate    float64 // of operations, a second
	Records float64 // a second, where an operation has several
	Bytes   float64 // of payload, a second
	Latency *Latency
	Errors  int64
	Error   error // the last one
	// Extra are numbers that only this kind of case has.
	Extra map[string]float64
}

// one is the sample of a single operation.
func one(took time.Duration, bytes int64) Sample {
	s := Sample{Ops: 1, Rate: 1 / took.Seconds(), Bytes: float64(bytes) / took.Seconds(), Latency: NewLatency()}
	s.Latency.Record(took)
	return s
}

// failed is the sample of an attempt that did not work.
func failed(err error) Sample {
	return Sample{Errors: 1, Error: err, Latency: NewLatency()}
}

// Spread is a median with the least and the greatest value.
type Spread struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// spread of no values is zero.
func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Low: v[0], High: v[n-1]}
}

// each returns one value of each sample.
func each(samples []Sample, value func(Sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = value(s)
	}
	return values
}

// merged is the latencies of all samples.
func merged(samples []Sample) *Latency {
	l := NewLatency()
	for _, s := range samples {
		l.Merge(s.Latency)
	}
	return l
}

func rate(s Sample) float64     { return s.Rate }
func byteRate(s Sample) float64 { return s.Bytes }

// percentile returns a value of samples for ratios: seconds.
func percentile(p float64) func(Sample) float64 {
	return func(s Sample) float64 { return s.Latency.At(p).Seconds() }
}
