package bench

import (
	"context"
	"fmt"

	"firn/internal/bench/exchange"
	"firn/internal/bench/limit"
)

// appendCase is one kind of load.
type appendCase struct {
	streams, clients, size int
	batch                  int // records an append
	json                   bool
	least                  float64 // of the limit
	synced                 bool    // the limit is a handler with a synced log, not an empty one
}

func (a appendCase) title() string {
	what := "bytes"
	if a.json {
		what = "JSON"
	}
	if a.batch > 1 {
		what = fmt.Sprintf("%d records of %s", a.batch, what)
	}
	return fmt.Sprintf("%s of %d B, %s, %s", what, a.size, plural(a.streams, "stream"), plural(a.clients, "client"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return count(float64(n)) + " " + noun + "s"
}

func (a appendCase) contentType() string {
	if a.json {
		return typeJSON
	}
	return typeBytes
}

func appendCases(o Options) []testCase {
	all := []appendCase{
		{streams: 1, clients: 1, size: 256, batch: 1, least: .80, synced: true},
		{streams: 16, clients: 64, size: 256, batch: 1, least: .75},
		{streams: 1, clients: 64, size: 256, batch: 1, least: .65},
		{streams: 500, clients: 256, size: 256, batch: 1, least: .70},
		{streams: 16, clients: 16, size: 256, batch: 100, json: true, least: .60},
	}
	if o.Streams > 0 || o.Clients > 0 || o.Size > 0 || o.Batch > 0 || o.JSON {
		own := appendCase{streams: o.Streams, clients: o.Clients, size: o.Size, batch: o.Batch, json: o.JSON}
		setDefault(&own.streams, 16)
		setDefault(&own.clients, 64)
		setDefault(&own.size, 256)
		setDefault(&own.batch, 1)
		all = []appendCase{own}
	}
	var cases []testCase
	for _, a := range all {
		cases = append(cases, testCase{a.title(), a.setup})
	}
	return cases
}

func (a appendCase) setup(ctx context.Context, r *rig) (_ *comparison, err error) {
	cmp := &comparison{figures: a.figures}
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	p := newPayload(a.contentType())
	body, stored := p.body(a.size, a.size)
	if a.batch > 1 {
		body, stored = p.records(a.batch, a.size)
	}
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	ids := r.names(a.streams)
	for _, s := range servers {
		if err := s.create(ctx, a.contentType(), ids...); err != nil {
			return nil, err
		}
		workers, err := a.workers(ctx, s.streams, ids, body, stored, true)
		if err != nil {
			return nil, err
		}
		cmp.sides = append(cmp.sides, closedSide(s.name, workers))
	}
	s := servers[0].server
	got, err := ask(ctx, s.streams, s.streams.Request("POST", "/"+ids[0], body, a.contentType()), 200, 204)
	if err != nil {
		return nil, err
	}
	for _, l := range []struct{ name, root string }{{sideExchange, limit.PathPlay}, {sideSynced, limit.PathSynced}} {
		e, err := r.play(ctx, got, l.root)
		if err != nil {
			return nil, err
		}
		workers, err := a.workers(ctx, e, ids, body, stored, false)
		if err != nil {
			return nil, err
		}
		cmp.sides = append(cmp.sides, closedSide(l.name, workers))
	}
	return cmp, nil
}

// workers are clients that go round the streams.
func (a appendCase) workers(ctx context.Context, e *exchange.Endpoint, ids []string, body []byte, stored int64, check bool) ([]Worker, error) {
	requests := make([][]byte, len(ids))
	for i, id := range ids {
		requests[i] = e.Request("POST", "/"+id, body, a.contentType())
	}
	return dialAll(ctx, e, a.clients, func(c *exchange.Conn, i int) Worker {
		w := &appender{Conn: c, requests: requests, at: i, step: a.clients, records: int64(a.batch), bytes: stored}
		if check {
			w.last = make([][]byte, len(ids))
		}
		return w
	})
}

func (a appendCase) figures(samples [][]Sample) []Figure {
	n := len(samples)
	server, empty, synced := samples[0], samples[n-2], samples[n-1]
	toEmpty := ratio("server / empty handler", server, empty, rate)
	toSynced := ratio("server / empty handler with a synced log", server, synced, rate)
	if a.least > 0 && a.synced {
		toSynced = toSynced.atLeast(a.least)
	} else if a.least > 0 && a.batch == 1 {
		toEmpty = toEmpty.atLeast(a.least)
	}
	figures := []Figure{toEmpty, toSynced}
	if a.batch > 1 {
		records := spread(each(server, func(s Sample) float64 { return s.Records }))
		figures = append(figures, Figure{Name: "records", Spread: records, Unit: "/s"})
		if a.least > 0 {
			const enough = 250_000
			best := max(records.Median/enough, toEmpty.Median/a.least)
			figures = append(figures, value("of 250,000 records/s or 0.6 of the empty handler, the better", best, "").atLeast(1))
		}
	}
	l := merged(server)
	if p50 := l.At(50); p50 > 0 {
		tail := value("p99.9 / p50", float64(l.At(99.9))/float64(p50), "")
		if a.streams == 500 && a.least > 0 {
			tail = tail.atMost(5)
		}
		figures = append(figures, tail)
	}
	return figures
}
