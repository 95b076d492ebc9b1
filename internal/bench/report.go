package bench

import "time"

// Report is all that a run found. Its JSON form only ever grows.
type Report struct {
	Version int       `json:"version"` // 1
	Began   time.Time `json:"began"`
	Machine Machine   `json:"machine"`
	Server  string    `json:"server"`         // its URL, or how it was started
	Peer    string    `json:"peer,omitempty"` // that of the second server
	Results []Result  `json:"results"`
}

// Machine says where the run was.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
	// LoadBefore and LoadAfter are the number of processes that wanted to run in the
	// minute before; -1 where that is not known. More than CPUs before a run means that
	// others were measured too.
	LoadBefore float64 `json:"load_before"`
	LoadAfter  float64 `json:"load_after"`
}

// Result is one case of a scenario.
type Result struct {
	Scenario string       `json:"scenario"`
	Case     string       `json:"case"`
	Sides    []SideResult `json:"sides"`
	Figures  []Figure     `json:"figures"`
	Skipped  string       `json:"skipped,omitempty"` // why
	Error    string       `json:"error,omitempty"`   // what made it fail
}

// SideResult is what one side did over all rounds.
type SideResult struct {
	Name           string    `json:"name"`
	Operations     int64     `json:"operations"`
	PerSecond      Spread    `json:"per_second"`
	RecordsPerSec  Spread    `json:"records_per_second"`
	BytesPerSecond Spread    `json:"bytes_per_second"`
	Latency        Quantiles `json:"latency_us"`
	Errors         int64     `json:"errors"`
	LastError      string    `json:"last_error,omitempty"`
}

// Quantiles are of latencies, in microseconds.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

// Figure is a number that means something by itself.
type Figure struct {
	Name string `json:"name"`
	Spread
	Unit   string  `json:"unit,omitempty"`
	Target *Target `json:"target,omitempty"`
}

// Target is what a figure is to be.
type Target struct {
	AtLeast *float64 `json:"at_least,omitempty"`
	AtMost  *float64 `json:"at_most,omitempty"`
	Met     bool     `json:"met"`
}

func (f Figure) atLeast(v float64) Figure {
	f.Target = &Target{AtLeast: &v, Met: f.Median >= v}
	return f
}

func (f Figure) atMost(v float64) Figure {
	f.Target = &Target{AtMost: &v, Met: f.Median <= v}
	return f
}

// value is a figure that was measured once.
func value(name string, v float64, unit string) Figure {
	return Figure{Name: name, Spread: Spread{v, v, v}, Unit: unit}
}

// Failures is how many cases had errors.
func (r *Report) Failures() int {
	n := 0
	for _, res := range r.Results {
		if res.Error != "" {
			n++
			continue
		}
		for _, s := range res.Sides {
			if s.Errors > 0 {
				n++
				break
			}
		}
	}
	return n
}

func sideResult(name string, samples []Sample) SideResult {
	l := merged(samples)
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()/100) / 10 }
	s := SideResult{
		Name:           name,
		PerSecond:      spread(each(samples, rate)),
		RecordsPerSec:  spread(each(samples, func(s Sample) float64 { return s.Records })),
		BytesPerSecond: spread(each(samples, byteRate)),
		Latency:        Quantiles{us(l.At(50)), us(l.At(90)), us(l.At(99)), us(l.At(99.9)), us(l.Max())},
	}
	for _, x := range samples {
		s.Operations += x.Ops
		s.Errors += x.Errors
		if x.Error != nil {
			s.LastError = x.Error.Error()
		}
	}
	return s
}
