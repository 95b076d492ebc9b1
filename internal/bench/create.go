package bench

import (
	"context"
	"fmt"

	"firn/internal/bench/exchange"
	"firn/internal/bench/limit"
)

func createCases(Options) []testCase {
	const clients = 64
	return []testCase{{fmt.Sprintf("empty streams, %d clients", clients), func(ctx context.Context, r *rig) (*comparison, error) {
		return create(ctx, r, clients)
	}}}
}

func create(ctx context.Context, r *rig, clients int) (_ *comparison, err error) {
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
	name := r.names(1)[0] + "-"
	side := func(label string, s *server, e *exchange.Endpoint) error {
		before, after := around(e.Request("PUT", "/"+name+hole, nil, typeBytes))
		workers, err := dialAll(ctx, e, clients, func(c *exchange.Conn, i int) Worker {
			return &creator{Conn: c, server: s, name: name, before: before, after: after,
				first: int64(i), next: int64(i), step: int64(clients)}
		})
		if err == nil {
			cmp.sides = append(cmp.sides, closedSide(label, workers))
		}
		return err
	}
	for _, s := range servers {
		if err := side(s.name, s.server, s.streams); err != nil {
			return nil, err
		}
	}
	s := servers[0].server
	id := r.names(1)[0]
	s.note(id)
	got, err := ask(ctx, s.streams, s.streams.Request("PUT", "/"+id, nil, typeBytes), 201)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct{ name, root string }{{sideExchange, limit.PathPlay}, {sideSynced, limit.PathSynced}} {
		e, err := r.play(ctx, got, l.root)
		if err != nil {
			return nil, err
		}
		if err := side(l.name, nil, e); err != nil {
			return nil, err
		}
	}
	cmp.figures = func(samples [][]Sample) []Figure {
		n := len(samples)
		return []Figure{ratio("server / empty handler", samples[0], samples[n-2], rate)}
	}
	return cmp, nil
}

// tinyStreams are each asked for once in a round trip of all clients through them.
const tinyStreams = 5000

func tinyCases(o Options) []testCase {
	a := appendCase{streams: tinyStreams, clients: 64, size: 100, batch: 1}
	if o.Full {
		a.streams = 20 * tinyStreams
	}
	return []testCase{{a.title(), a.setup}}
}
