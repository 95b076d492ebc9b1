package bench

import (
	"context"
	"fmt"

	"firn/internal/bench/exchange"
)

// readClients catch up at the same time.
const readClients = 4

func readCases(o Options) []testCase {
	var cases []testCase
	for _, c := range []struct {
		contentType, what string
		least             float64
	}{{typeBytes, "bytes", .70}, {typeJSON, "JSON", 0}} {
		title := fmt.Sprintf("%s of %s, hot, %d clients", mib(o.ReadBytes), c.what, readClients)
		cases = append(cases, testCase{title, func(ctx context.Context, r *rig) (*comparison, error) {
			return readHot(ctx, r, c.contentType, c.least)
		}})
	}
	return cases
}

func mib(bytes int64) string { return count(float64(bytes)/(1<<20)) + " MiB" }

func readHot(ctx context.Context, r *rig, contentType string, least float64) (_ *comparison, err error) {
	cmp := new(comparison)
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	id := r.names(1)[0]
	for _, s := range servers {
		if err := s.create(ctx, contentType, id); err != nil {
			return nil, err
		}
		size, err := s.fill(ctx, id, contentType, r.o.ReadBytes)
		if err != nil {
			return nil, err
		}
		if s.admin != nil {
			// By itself that would happen while it is read. The hot copy stays.
			if err := s.move(ctx, "seal", id); err != nil {
				return nil, err
			}
		}
		workers, err := dialAll(ctx, s.streams, readClients, func(c *exchange.Conn, _ int) Worker {
			return newReader(c, s.streams, id, contentType, size)
		})
		if err != nil {
			return nil, err
		}
		cmp.sides = append(cmp.sides, closedSide(s.name, workers))
	}
	file, err := r.file(ctx, r.o.ReadBytes)
	if err != nil {
		return nil, err
	}
	request := file.Request("GET", "", nil)
	workers, err := dialAll(ctx, file, readClients, func(c *exchange.Conn, _ int) Worker {
		return &getter{Conn: c, request: request, want: r.o.ReadBytes}
	})
	if err != nil {
		return nil, err
	}
	cmp.sides = append(cmp.sides, closedSide("file sent by the kernel", workers))
	cmp.figures = func(samples [][]Sample) []Figure {
		f := ratio("server / file sent by the kernel", samples[0], samples[len(samples)-1], byteRate)
		if least > 0 {
			f = f.atLeast(least)
		}
		return []Figure{f}
	}
	return cmp, nil
}
