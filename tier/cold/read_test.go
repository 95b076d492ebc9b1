package cold_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/blob/fault"
	"firn/pkg/segment"
	"firn/tier/cold"
)

func TestReadsEveryRangeAtFrameEdges(t *testing.T) {
	const n = 3*frameBytes + 17
	for _, fetch := range []uint64{0, 1, 150} { // all in one GET, one frame a GET, one or two
		t.Run(fmt.Sprint(fetch), func(t *testing.T) {
			r := newRig(t, cold.Options{FetchBytes: fetch})
			ref, content := r.put(t, 1000, n)
			if len(ref.Frames) != 4 {
				t.Fatalf("the segment has %d frames, want 4", len(ref.Frames))
			}
			var edges []int
			for e := 0; e <= n; e += frameBytes {
				edges = append(edges, e-1, e, e+1)
			}
			edges = append(edges, n-1, n)
			for _, from := range edges {
				for _, to := range edges {
					got, err := r.Read(context.Background(), []byte("kept "), ref, 1000+uint64(from), 1000+uint64(to))
					if from < 0 || to > n || from >= to {
						if !errors.Is(err, segment.ErrRange) || string(got) != "kept " {
							t.Errorf("[%d, %d): %q, %v; want ErrRange", from, to, got, err)
						}
						continue
					}
					if err != nil || !bytes.Equal(got, append([]byte("kept "), content[from:to]...)) {
						t.Errorf("[%d, %d): %d bytes, %v", from, to, len(got), err)
					}
				}
			}
		})
	}
}

func TestPageTakesOneGet(t *testing.T) {
	r := newRig(t, cold.Options{})
	ref, content := r.put(t, 0, 10*frameBytes)
	read := func(from, to uint64) func() {
		return func() {
			got, err := r.Read(context.Background(), nil, ref, from, to)
			equal(t, got, err, content[from:to])
		}
	}
	for _, tt := range []struct {
		what     string
		from, to uint64
		gets     int
	}{
		{"within one frame", 2*frameBytes + 1, 2*frameBytes + 2, 1},
		{"the same frame again", 2 * frameBytes, 3 * frameBytes, 0},
		{"across the edges of four frames", 6*frameBytes - 1, 9*frameBytes + 1, 1},
		{"on both sides of what is cached", 0, 5 * frameBytes, 2},
		{"everything, most of it cached", 0, 10 * frameBytes, 0},
	} {
		if n := r.gets(read(tt.from, tt.to)); n != tt.gets {
			t.Errorf("%s: %d GETs, want %d", tt.what, n, tt.gets)
		}
	}
}

func TestLongRangeIsFetchedInBatches(t *testing.T) {
	probe := newRig(t, cold.Options{})
	ref, _ := probe.put(t, 0, 10*frameBytes)
	three := uint64(ref.Frames[0].Length + ref.Frames[1].Length + ref.Frames[2].Length)
	for fetch, want := range map[uint64]int{three: 4, three - 1: 5, 1: 10} {
		r := newRig(t, cold.Options{FetchBytes: fetch})
		ref, content := r.put(t, 0, 10*frameBytes)
		n := r.gets(func() {
			got, err := r.all(ref)
			equal(t, got, err, content)
		})
		if n != want {
			t.Errorf("%d GETs of at most %d bytes, want %d", n, fetch, want)
		}
	}
}

func TestManyReadersShareOneGet(t *testing.T) {
	r := newRig(t, cold.Options{})
	ref, content := r.put(t, 0, 10*frameBytes)
	gate := make(chan struct{})
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Stall, Gate: gate})
	n := r.gets(func() {
		var readers sync.WaitGroup
		for range 200 {
			readers.Go(func() {
				got, err := r.all(ref)
				if err != nil || !bytes.Equal(got, content) {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			})
		}
		close(gate)
		readers.Wait()
	})
	if n != 1 {
		t.Errorf("200 readers made %d GETs, want 1", n)
	}
}

func TestReaderThatLeavesDoesNotCancelTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{})
		ref, content := r.put(t, 0, frameBytes)
		gate := make(chan struct{})
		r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Stall, Gate: gate})
		ctx, leave := context.WithCancel(context.Background())
		var readers sync.WaitGroup
		readers.Go(func() { // it begins the fetch
			if _, err := r.Read(ctx, nil, ref, 0, frameBytes); !errors.Is(err, context.Canceled) {
				t.Errorf("a reader that left got %v", err)
			}
		})
		synctest.Wait()
		readers.Go(func() {
			got, err := r.all(ref)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("a reader that stayed got %d bytes, %v", len(got), err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		close(gate)
		readers.Wait()
		if n := r.gets(func() { _, _ = r.all(ref) }); n != 0 {
			t.Errorf("the next reader made %d GETs, want none", n)
		}
	})
}

func TestCloseEndsWhatIsFetched(t *testing.T) {
	// The bubble fails if a goroutine is left.
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, cold.Options{})
		ref, _ := r.put(t, 0, frameBytes)
		r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Stall})
		var readers sync.WaitGroup
		readers.Go(func() {
			if _, err := r.all(ref); !errors.Is(err, context.Canceled) {
				t.Errorf("a reader got %v, want that the fetch was cancelled", err)
			}
		})
		synctest.Wait()
		r.Close()
		readers.Wait()
	})
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	const bound = 16 << 10
	registry := prometheus.NewRegistry()
	r := newRig(t, cold.Options{CacheBytes: bound, Registerer: registry})
	var refs []segment.Ref
	var contents [][]byte
	for i := range 20 { // 20 × 10 frames of 64 bytes, which are counted as about 400
		ref, content := r.put(t, uint64(i)*10*frameBytes, 10*frameBytes)
		refs, contents = append(refs, ref), append(contents, content)
	}
	for range 3 {
		for i, ref := range refs {
			got, err := r.all(ref)
			equal(t, got, err, contents[i])
			if n := value(t, registry, "firn_cache_bytes"); n > bound {
				t.Fatalf("the cache takes %v bytes of %d", n, bound)
			}
		}
	}
	if n := value(t, registry, "firn_cache_bytes"); n < bound/4 {
		t.Errorf("the cache takes %v bytes of %d: nothing is kept", n, bound)
	}
}

func TestCacheGivesUpWhatWasNotAskedForTheLongest(t *testing.T) {
	r := newRig(t, cold.Options{CacheBytes: 16 << 10})
	kept, _ := r.put(t, 0, frameBytes)
	old, _ := r.put(t, frameBytes, frameBytes)
	read := func(ref segment.Ref) int {
		return r.gets(func() {
			if _, err := r.all(ref); err != nil {
				t.Fatal(err)
			}
		})
	}
	read(old)
	for i := range 10 { // 100 frames in all, of which the cache holds some 40
		if n := read(kept); n != 0 && i > 0 {
			t.Errorf("what was asked for all the time took %d GETs, want none", n)
		}
		ref, _ := r.put(t, uint64(1+i)*10*frameBytes, 10*frameBytes)
		read(ref)
		if n := read(ref); n != 0 {
			t.Errorf("what was just read took %d GETs", n)
		}
	}
	if n := read(old); n != 1 {
		t.Errorf("what was asked for once took %d GETs, want 1", n)
	}
}

func TestFrameLargerThanTheCacheIsReadAndNotKept(t *testing.T) {
	r := newRig(t, cold.Options{CacheBytes: 300})
	ref, content := r.put(t, 0, 2*frameBytes)
	for range 2 {
		n := r.gets(func() {
			got, err := r.all(ref)
			equal(t, got, err, content)
		})
		if n != 1 {
			t.Errorf("%d GETs, want 1", n)
		}
	}
}

func value(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func TestMetricsCountHitsAndMisses(t *testing.T) {
	registry := prometheus.NewRegistry()
	r := newRig(t, cold.Options{Registerer: registry})
	ref, _ := r.put(t, 0, 3*frameBytes)
	for range 2 {
		if _, err := r.all(ref); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]float64{"firn_cache_hits_total": 3, "firn_cache_misses_total": 3} {
		if n := value(t, registry, name); n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
}
