package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"firn/internal/bench/limit"
	"firn/internal/blob"
	"firn/internal/blob/fs"
	"firn/internal/blob/open"
)

const (
	// rawParallel and rawBytes are the GETs of the limit.
	rawParallel = 4
	rawBytes    = 4 << 20

	calls = `firn_object_calls_total{op="get",result="ok"}`
)

func coldCases(o Options) []testCase {
	return []testCase{
		{mib(o.ColdBytes) + " of JSON, cold, 1 client", readCold},
		{mib(o.ColdBytes) + " of JSON, half of it cold, 1 client", readMixed},
	}
}

// coldServer has less cache than there is to read: each pass is as cold as the first.
func coldServer(ctx context.Context, r *rig) (*server, string, error) {
	cache := max(1<<20, min(r.o.ColdBytes/4, 256<<20))
	return r.own(ctx, "--cache.max-bytes="+strconv.FormatInt(cache, 10), "--seal.max-age=1d")
}

// freeze moves all of a stream to cold storage.
func (s *server) freeze(ctx context.Context, id string) error {
	if err := s.move(ctx, "seal", id); err != nil {
		return err
	}
	return s.move(ctx, "evict", id)
}

func readCold(ctx context.Context, r *rig) (_ *comparison, err error) {
	s, dir, err := coldServer(ctx, r)
	if err != nil {
		return nil, err
	}
	cmp := &comparison{close: func() { s.close() }}
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	id := r.names(1)[0]
	if err := s.create(ctx, typeJSON, id); err != nil {
		return nil, err
	}
	size, err := s.fill(ctx, id, typeJSON, r.o.ColdBytes)
	if err != nil {
		return nil, err
	}
	if err := s.freeze(ctx, id); err != nil {
		return nil, err
	}
	store, err := coldStore(ctx, r.o, dir)
	if err != nil {
		return nil, err
	}
	objects, err := limit.FindObjects(ctx, store, id, rawBytes)
	if err != nil {
		return nil, err
	}
	if objects.Content != size {
		return nil, fmt.Errorf("cold stream: %w: objects hold %d bytes instead of %d", errContent, objects.Content, size)
	}
	conn, err := s.streams.Dial(ctx)
	if err != nil {
		return nil, err
	}
	w := newReader(conn, s.streams, id, typeJSON, size)
	cmp.sides = []Side{
		{sideServer, func(ctx context.Context, _, _ time.Duration) (Sample, error) { return s.pass(ctx, w) }, w.Close},
		{"GETs and zstd", func(ctx context.Context, _, _ time.Duration) (Sample, error) {
			began := time.Now()
			n, err := objects.DecodeAll(ctx, rawParallel)
			if err == nil && n != size {
				err = fmt.Errorf("cold objects: %w: %d bytes instead of %d", errContent, n, size)
			}
			if err != nil {
				return failed(err), nil
			}
			return one(time.Since(began), n), nil
		}, nil},
	}
	frames := float64(objects.Length) / (1 << 20)
	cmp.figures = func(samples [][]Sample) []Figure {
		gets := spread(each(samples[0], func(s Sample) float64 { return s.Extra["gets"] / frames }))
		return []Figure{
			ratio("server / parallel GETs and zstd", samples[0], samples[1], byteRate).atLeast(.70),
			Figure{Name: "GETs for each MiB of frames", Spread: gets}.atMost(1.1),
			value("frames", frames, "MiB"),
		}
	}
	return cmp, nil
}

// pass reads a stream once and counts what that costs the object store.
func (s *server) pass(ctx context.Context, w *reader) (Sample, error) {
	before, err := s.metrics(ctx)
	if err != nil {
		return Sample{}, err
	}
	began := time.Now()
	_, n, err := w.Do()
	took := time.Since(began)
	if err != nil {
		return failed(err), nil
	}
	after, err := s.metrics(ctx)
	if err != nil {
		return Sample{}, err
	}
	sample := one(took, n)
	sample.Extra = map[string]float64{"gets": after[calls] - before[calls]}
	return sample, nil
}

// coldStore opens what a server that was started over dir seals into.
func coldStore(ctx context.Context, o Options, dir string) (blob.Store, error) {
	if o.Cold == "" {
		return fs.Open(filepath.Join(dir, "cold"), fs.Options{})
	}
	return open.Open(ctx, o.Cold, open.Options{})
}

// readMixed reads a stream of which the first half is cold beside one that is hot.
func readMixed(ctx context.Context, r *rig) (_ *comparison, err error) {
	s, _, err := coldServer(ctx, r)
	if err != nil {
		return nil, err
	}
	cmp := &comparison{close: func() { s.close() }}
	defer func() {
		if err != nil {
			cmp.end()
		}
	}()
	for i, name := range []string{sideServer, "all of it hot"} {
		id := r.names(1)[0]
		if err := s.create(ctx, typeJSON, id); err != nil {
			return nil, err
		}
		size, err := s.fill(ctx, id, typeJSON, r.o.ColdBytes/2)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := s.freeze(ctx, id); err != nil {
				return nil, err
			}
		}
		more, err := s.fill(ctx, id, typeJSON, r.o.ColdBytes/2)
		if err != nil {
			return nil, err
		}
		conn, err := s.streams.Dial(ctx)
		if err != nil {
			return nil, err
		}
		workers := []Worker{Worker(newReader(conn, s.streams, id, typeJSON, size+more))}
		cmp.sides = append(cmp.sides, closedSide(name, workers))
	}
	cmp.figures = func(samples [][]Sample) []Figure {
		return []Figure{ratio("half cold / hot", samples[0], samples[1], byteRate)}
	}
	return cmp, nil
}
