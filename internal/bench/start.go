package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"firn/internal/bench/exchange"
)

// idleStream is less than the name of a stream would take: none has anything on the heap,
// but the blocks of Pebble's cache are more where there is more to cache.
const idleStream = 64

func startCases(o Options) []testCase {
	return []testCase{{plural(o.Many, "stream"), starts}}
}

func starts(ctx context.Context, r *rig) (*comparison, error) {
	// What a server holds anyway is in both of two numbers of streams.
	few := max(1, r.o.Many/10)
	s, dir, err := r.own(ctx)
	if err != nil {
		return nil, err
	}
	if s, err = s.settled(ctx, r, dir, few); err != nil {
		return nil, err
	}
	base, err := s.memory(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s, err = s.settled(ctx, r, dir, r.o.Many-few); err != nil {
		return nil, err
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	cmp := &comparison{sides: []Side{
		{sideServer, func(ctx context.Context, _, _ time.Duration) (Sample, error) {
			s, err := startServer(ctx, r.o, dir)
			if err != nil {
				return failed(err), nil
			}
			sample := one(s.process.ready, 0)
			sample.Extra = map[string]float64{"resident": float64(s.process.resident())}
			sample.Extra["memory"], err = s.memory(ctx)
			return sample, errors.Join(err, s.close())
		}, nil},
		{"open of Pebble", func(ctx context.Context, _, _ time.Duration) (Sample, error) {
			p, err := start(ctx, r.o, "bench-limit", "--pebble", filepath.Join(dir, "hot"))
			if err != nil {
				return failed(err), nil
			}
			return one(p.ready, 0), p.stop()
		}, nil},
	}}
	cmp.figures = func(samples [][]Sample) []Figure {
		resident := spread(each(samples[0], func(s Sample) float64 { return s.Extra["resident"] / (1 << 20) }))
		memory := spread(each(samples[0], func(s Sample) float64 { return (s.Extra["memory"] - base) / float64(max(1, r.o.Many-few)) }))
		return []Figure{
			ratio("start of the server / of a program that opens Pebble", samples[0], samples[1], percentile(50)).atMost(2),
			Figure{Name: "resident after the start", Spread: resident, Unit: "MiB"}.atMost(300),
			Figure{Name: "heap and stacks for each stream, after the start", Spread: memory, Unit: "B"}.atMost(idleStream),
		}
	}
	return cmp, nil
}

// settled makes n streams, and returns the server that was started behind that for the
// second time: the log that the streams have left is no part of a start.
func (s *server) settled(ctx context.Context, r *rig, dir string, n int) (*server, error) {
	if err := errors.Join(s.populate(ctx, r, n), s.close()); err != nil {
		return nil, err
	}
	s, err := startServer(ctx, r.o, dir)
	if err != nil {
		return nil, err
	}
	if err := s.close(); err != nil {
		return nil, err
	}
	return startServer(ctx, r.o, dir)
}

// populate makes n streams with a message in each.
func (s *server) populate(ctx context.Context, r *rig, n int) error {
	ids := r.names(n)
	return inParallel(ctx, s.streams, n, func(c *exchange.Conn, i int) error {
		a, err := c.Do(s.streams.Request("PUT", "/"+ids[i], []byte(`{"first":1}`), typeJSON), nil)
		if err == nil && a.Status != 201 {
			err = fmt.Errorf("create stream: %w %d", errStatus, a.Status)
		}
		return err
	})
}
