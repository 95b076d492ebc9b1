package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"firn/pkg/client"
)

func producerCases(Options) []testCase {
	return []testCase{{"1 producer of JSON of 256 B, 1 follower", produce}}
}

func produce(ctx context.Context, r *rig) (*comparison, error) {
	servers, err := r.servers(ctx)
	if err != nil {
		return nil, err
	}
	cmp := new(comparison)
	for i, s := range servers {
		var fields []string
		if i == 0 {
			fields = r.o.Fields
		}
		cmp.sides = append(cmp.sides, Side{Name: s.name, Measure: func(ctx context.Context, _, interval time.Duration) (Sample, error) {
			id := r.names(1)[0]
			if err := s.create(ctx, typeJSON, id); err != nil {
				return Sample{}, err
			}
			sample, err := s.produce(ctx, id, interval, fields)
			if err != nil && ctx.Err() == nil {
				return failed(err), nil
			}
			return sample, nil
		}})
	}
	return cmp, nil
}

// produce appends with a producer for a while, and returns when a follower has seen all
// of it. An operation is a record; its latency ends where the follower has it.
func (s *server) produce(ctx context.Context, id string, interval time.Duration, fields []string) (Sample, error) {
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	o := client.Options{HTTP: &http.Client{Transport: transport}, Header: http.Header{}}
	for _, f := range fields {
		name, v, _ := strings.Cut(f, ":")
		o.Header.Add(name, strings.TrimSpace(v))
	}
	st, err := client.NewStream(s.streams.String()+"/"+id, o)
	if err != nil {
		return Sample{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, interval+time.Minute)
	defer cancel()
	var seen audience
	seen.latencies, seen.seen = []*Latency{NewLatency()}, []int64{0}
	followed := make(chan error, 1)
	go func() {
		for page, err := range st.Follow(ctx, client.Beginning) {
			if err != nil {
				followed <- err
				return
			}
			seen.receive(0, page.Data)
		}
		followed <- ctx.Err() // nil: the stream was closed, and this is its end
	}()
	p, err := st.NewProducer(client.ProducerOptions{ContentType: "application/json"})
	if err != nil {
		return Sample{}, err
	}
	began, n := time.Now(), 0
	var produced error
	for time.Since(began) < interval && produced == nil {
		produced = p.Append(ctx, message(time.Now(), n))
		n++
	}
	if err := errors.Join(produced, p.End(ctx), p.Close(ctx)); err != nil {
		return Sample{}, fmt.Errorf("produce: %w", err)
	}
	if err := <-followed; err != nil {
		return Sample{}, fmt.Errorf("follow: %w", err)
	}
	sample := seen.sample(int64(n), time.Since(began), make(chan error, 1))
	sample.Bytes = sample.Rate * float64(len(message(began, 0)))
	return sample, nil
}
