package sim_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/sim"
)

var (
	seed     = flag.Uint64("seed", 0, "first seed of the random runs")
	seeds    = flag.Int("seeds", 1500, "how many random runs")
	steps    = flag.Int("steps", 40, "steps of a random run")
	duration = flag.Duration("duration", 0, "how long to go on with further seeds, instead of -seeds")
	shrink   = flag.Int("shrink", 2000, "how many runs a failing one may take to be made shorter")
	script   = flag.String("script", "testdata/*.script", "scripts that TestScripts plays")
)

// workers play seeds side by side.
const workers = 2

func TestRandom(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n = min(n, 300)
	}
	if raced && *duration == 0 {
		n = min(n, 50)
	}
	tally, encoders := newTally(), sim.NewEncoders()
	end := time.Now().Add(*duration)
	var played atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for i := w; *duration == 0 && i < n || *duration > 0 && time.Now().Before(end); i += workers {
					o := sim.Options{Seed: *seed + uint64(i), Steps: *steps, Encoders: encoders, Done: tally.add}
					if err := sim.Run(context.Background(), o); err != nil {
						report(t, o, err)
					}
					played.Add(1)
				}
			})
		}
	})
	t.Logf("%d seeds of %d steps%s", played.Load(), *steps, tally)
	if n >= 1000 {
		tally.check(t)
	}
}

// report makes a failing run short, and fails the test.
func report(t *testing.T, o sim.Options, err error) {
	t.Helper()
	again := fmt.Sprintf("run again: go test ./internal/sim -run TestRandom -seed %d -seeds 1 -steps %d", o.Seed, o.Steps)
	f := new(sim.Failure)
	if !errors.As(err, &f) {
		t.Fatalf("%v\n%s", err, again)
	}
	o.Done = nil
	short := sim.Shrink(context.Background(), o, f, *shrink)
	t.Fatalf("seed %d: %v\n%s\nshort, for testdata: %v", o.Seed, f.Err, again, short)
}

// TestScripts plays histories that once showed a fault, each named after it.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(*script)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts at %s: %v", *script, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := sim.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := sim.Run(context.Background(), sim.Options{Script: &s}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tally counts what was done, so that a generator which never draws it is noticed.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: make(map[string]int)} }

func (c *tally) add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

func (c *tally) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "\n%7d %s", c.counts[k], k)
	}
	return b.String()
}

func (c *tally) check(t *testing.T) {
	for _, do := range append(sim.Steps(),
		"build, done", "merge, done", "copy, done", "commit, done", "commit, conflict", "fork, done", "resume, done", "stale, refused",
		"bootstrap, partial: ", "bootstrap, partial: cold", "bootstrap, partial: size", "lose, done", "publish, failed", "upload, given up",
	) {
		if c.counts[do] < 5 {
			t.Errorf("%s was taken only %d times", do, c.counts[do])
		}
	}
}
