package bench

import (
	"context"
	"fmt"

	"firn/internal/bench/exchange"
	"firn/internal/bench/limit"
)

const (
	bootstrapClients  = 100
	bootstrapMessages = 200
	snapshotBytes     = 64 << 10
)

func bootstrapCases(Options) []testCase {
	title := fmt.Sprintf("snapshot of 64 KiB, %d JSON messages of 256 B, %d clients", bootstrapMessages, bootstrapClients)
	return []testCase{{title, bootstrap}}
}

func bootstrap(ctx context.Context, r *rig) (_ *comparison, err error) {
	cmp := new(comparison)
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	s, err := r.server(ctx)
	if err != nil {
		return nil, err
	}
	id := r.names(1)[0]
	if err := s.create(ctx, typeJSON, id); err != nil {
		return nil, err
	}
	if _, err := s.fill(ctx, id, typeJSON, 64<<10); err != nil {
		return nil, err
	}
	head, err := ask(ctx, s.streams, s.streams.Request("POST", "/"+id, []byte("{}"), typeJSON), 200, 204)
	if err != nil {
		return nil, err
	}
	blob, _ := newPayload(typeBytes).body(snapshotBytes, snapshotBytes)
	publish := s.streams.Request("PUT", "/"+id+"/snapshot/"+string(head.Next), blob, typeJSON)
	if _, err := ask(ctx, s.streams, publish, 200, 201, 204); err != nil {
		return nil, err
	}
	messages, _ := newPayload(typeJSON).records(bootstrapMessages, 256)
	if _, err := ask(ctx, s.streams, s.streams.Request("POST", "/"+id, messages, typeJSON), 200, 204); err != nil {
		return nil, err
	}
	request := s.streams.Request("GET", "/"+id+"/bootstrap", nil)
	got, err := ask(ctx, s.streams, request, 200)
	if err != nil {
		return nil, err
	}
	if !got.UpToDate || len(got.body) < snapshotBytes+bootstrapMessages*256 {
		return nil, fmt.Errorf("bootstrap: %w: %d bytes, up to date %v", errContent, len(got.body), got.UpToDate)
	}
	e, err := r.play(ctx, got, limit.PathPlay)
	if err != nil {
		return nil, err
	}
	for _, side := range []struct {
		name    string
		e       *exchange.Endpoint
		request []byte
	}{{sideServer, s.streams, request}, {sideExchange, e, e.Request("GET", "/"+id+"/bootstrap", nil)}} {
		workers, err := dialAll(ctx, side.e, bootstrapClients, func(c *exchange.Conn, _ int) Worker {
			return &getter{Conn: c, request: side.request, want: int64(len(got.body))}
		})
		if err != nil {
			return nil, err
		}
		cmp.sides = append(cmp.sides, closedSide(side.name, workers))
	}
	cmp.figures = func(samples [][]Sample) []Figure {
		return []Figure{
			ratio("p99 of the server / of a GET from an empty handler", samples[0], samples[1], percentile(99)).atMost(2),
			ratio("server / empty handler", samples[0], samples[1], rate),
		}
	}
	return cmp, nil
}
