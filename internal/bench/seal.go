package bench

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

const (
	sealBytes   = 32 << 20 // of a stream
	sealStreams = 3        // sealed one after another while appends run
	sealRate    = 500      // appends a second
	sealClients = 16

	cpuSeconds = "process_cpu_seconds_total"
)

func sealCases(o Options) []testCase {
	title := fmt.Sprintf("%d streams of %s of JSON, %d appends/s meanwhile", sealStreams, mib(o.sealBytes()), sealRate)
	return []testCase{{title, seal}}
}

// sealBytes is less where less is read than by default.
func (o Options) sealBytes() int64 { return min(sealBytes, o.ColdBytes) }

func seal(ctx context.Context, r *rig) (_ *comparison, err error) {
	// Nothing is sealed before it is asked for.
	s, _, err := r.own(ctx, "--seal.target-bytes="+strconv.Itoa(4*sealBytes), "--seal.max-age=1d")
	if err != nil {
		return nil, err
	}
	cmp := &comparison{close: func() { s.close() }}
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	a := appendCase{streams: 16, clients: sealClients, size: 256, batch: 1}
	ids := r.names(a.streams)
	if err := s.create(ctx, typeBytes, ids...); err != nil {
		return nil, err
	}
	p := newPayload(typeBytes)
	body, stored := p.body(a.size, a.size)
	workers, err := a.workers(ctx, s.streams, ids, body, stored, true)
	if err != nil {
		return nil, err
	}
	fill := func(ctx context.Context, n int) ([]string, int64, error) {
		full := r.names(n)
		if err := s.create(ctx, typeJSON, full...); err != nil {
			return nil, 0, err
		}
		total := int64(0)
		for _, id := range full {
			size, err := s.fill(ctx, id, typeJSON, r.o.sealBytes())
			if err != nil {
				return nil, 0, err
			}
			total += size
		}
		return full, total, s.idle(ctx)
	}
	cmp.sides = []Side{
		{"appends while sealing", func(ctx context.Context, warm, _ time.Duration) (Sample, error) {
			full, _, err := fill(ctx, sealStreams)
			if err != nil {
				return Sample{}, err
			}
			during, done := context.WithCancel(ctx)
			defer done()
			sealed := make(chan error, 1)
			go func() {
				defer done()
				pause(ctx, warm)
				for _, id := range full {
					if err := s.move(ctx, "seal", id); err != nil {
						sealed <- err
						return
					}
				}
				sealed <- nil
			}()
			sample := openLoop(during, workers, sealRate, warm, time.Minute)
			return sample, <-sealed
		}, func() { closeAll(workers) }},
		{"appends alone", func(ctx context.Context, warm, interval time.Duration) (Sample, error) {
			// As many bytes are there to be sealed.
			if _, _, err := fill(ctx, sealStreams); err != nil {
				return Sample{}, err
			}
			return openLoop(ctx, workers, sealRate, warm, interval), nil
		}, nil},
		{"sealing alone", func(ctx context.Context, _, _ time.Duration) (Sample, error) {
			full, size, err := fill(ctx, 1)
			if err != nil {
				return Sample{}, err
			}
			return s.sealOnce(ctx, full[0], size)
		}, nil},
	}
	cmp.figures = func(samples [][]Sample) []Figure {
		speed := spread(each(samples[2], func(s Sample) float64 { return s.Extra["core"] }))
		return []Figure{
			Figure{Name: "sealed for each second of a core", Spread: speed, Unit: "MB"}.atLeast(100),
			ratio("p99 of appends while sealing / alone", samples[0], samples[1], percentile(99)).atMost(2),
		}
	}
	return cmp, nil
}

const (
	idlePause = 250 * time.Millisecond
	idleWait  = 20 * time.Second
)

// idle waits until the server has done what a load leaves behind, flushes and compactions
// that are nothing of what comes next: until it takes a twentieth of a processor at most.
func (s *server) idle(ctx context.Context) error {
	last := math.Inf(-1)
	for end := time.Now().Add(idleWait); ; pause(ctx, idlePause) {
		m, err := s.metrics(ctx)
		if err != nil {
			return err
		}
		if m[cpuSeconds]-last <= idlePause.Seconds()/20 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the server does not come to rest in %v", idleWait)
		}
		last = m[cpuSeconds]
	}
}

// sealOnce seals a stream and counts the processor time that the server takes for it.
func (s *server) sealOnce(ctx context.Context, id string, size int64) (Sample, error) {
	before, err := s.metrics(ctx)
	if err != nil {
		return Sample{}, err
	}
	began := time.Now()
	if err := s.move(ctx, "seal", id); err != nil {
		return Sample{}, err
	}
	took := time.Since(began)
	after, err := s.metrics(ctx)
	if err != nil {
		return Sample{}, err
	}
	sample := one(took, size)
	// The clock of the metric has steps of 10 ms.
	core := max(after[cpuSeconds]-before[cpuSeconds], .01)
	sample.Extra = map[string]float64{"core": float64(size) / 1e6 / core}
	return sample, nil
}
