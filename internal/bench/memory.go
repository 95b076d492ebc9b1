package bench

import (
	"context"
	"fmt"
	"time"
)

func memoryCases(o Options) []testCase {
	return []testCase{{fmt.Sprintf("%s by events", plural(o.Readers, "idle reader")), memory}}
}

func memory(ctx context.Context, r *rig) (*comparison, error) {
	s, _, err := r.own(ctx)
	if err != nil {
		return nil, err
	}
	n := r.o.Readers
	cmp := &comparison{close: func() { s.close() }, sides: []Side{{Name: sideServer, Measure: func(ctx context.Context, _, _ time.Duration) (Sample, error) {
		id := r.names(1)[0]
		if err := s.create(ctx, typeJSON, id); err != nil {
			return Sample{}, err
		}
		before, err := s.memory(ctx)
		if err != nil {
			return Sample{}, err
		}
		resident := s.process.resident()
		began := time.Now()
		end, err := readersHeld(ctx, s, id, n)
		if err != nil {
			return failed(err), nil
		}
		took := time.Since(began)
		defer end()
		after, err := s.memory(ctx)
		if err != nil {
			return Sample{}, err
		}
		sample := one(took/time.Duration(n), 0)
		sample.Extra = map[string]float64{
			"memory":   (after - before) / float64(n) / (1 << 10),
			"resident": float64(s.process.resident()-resident) / float64(n) / (1 << 10),
		}
		return sample, nil
	}}}}
	cmp.figures = func(samples [][]Sample) []Figure {
		held := spread(each(samples[0], func(s Sample) float64 { return s.Extra["memory"] }))
		// Memory that a process has had once it does not always give back: the first
		// round is the one that says something.
		resident := samples[0][0].Extra["resident"]
		return []Figure{
			Figure{Name: "heap and stacks for each reader", Spread: held, Unit: "KiB"}.atMost(16),
			value("resident for each reader, first round", resident, "KiB"),
		}
	}
	return cmp, nil
}
