package tiertest_test

import (
	"bytes"
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
	"testing"

	"firn/internal/tiertest"
	"firn/tier/hot"
)

var (
	seed   = flag.Uint64("seed", 0, "first seed of the random runs")
	seeds  = flag.Int("seeds", 200, "how many random runs")
	steps  = flag.Int("steps", 20, "steps of a random run")
	script = flag.String("script", "testdata/*.script", "scripts that TestScripts runs")
)

// workers run seeds side by side.
const workers = 4

func TestRandom(t *testing.T) {
	tally := newTally()
	t.Run("seeds", func(t *testing.T) {
		for w := range uint64(workers) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for i := w; i < uint64(*seeds); i += workers {
					o := tiertest.Options{Seed: *seed + i, Steps: *steps, Answered: tally.add}
					if err := tiertest.Run(context.Background(), o); err != nil {
						t.Fatalf("%v\nrun again: go test ./internal/tiertest -run TestRandom -seed %d -seeds 1 -steps %d", err, o.Seed, o.Steps)
					}
				}
			})
		}
	})
	t.Log(tally)
	if *seeds >= 100 {
		tally.check(t)
	}
}

// TestScripts runs histories that once showed a fault, each named after it.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(*script)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts at %s: %v", *script, err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var o tiertest.Options
			for line := range bytes.Lines(data) {
				s, err := tiertest.Parse(line)
				if err != nil {
					t.Fatal(err)
				}
				o.Script = append(o.Script, s)
			}
			if err := tiertest.Run(context.Background(), o); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// tally counts answers, so that a generator which draws nothing that works, or
// nothing that is refused, is noticed.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: make(map[string]int)} }

func (c *tally) add(do string, err error) {
	key := do
	if err != nil {
		key = fmt.Sprintf("%s: %v", do, err)
		if i := strings.IndexAny(key, "0123456789"); i >= 0 {
			key = key[:i]
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[key]++
}

func (c *tally) String() string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c.counts)) {
		fmt.Fprintf(&b, "\n%6d %s", c.counts[k], k)
	}
	return b.String()
}

func (c *tally) check(t *testing.T) {
	for _, do := range []string{
		"append", "create", "fork", "seal", "pack", "replace", "unmerge", "evict", "publish", "trim", "delete", "expire", "abandon", "forget", "bucket", "unbucket",
	} {
		if c.counts[do] < 5 {
			t.Errorf("%s was taken only %d times", do, c.counts[do])
		}
	}
}

func TestHarnessCatches(t *testing.T) {
	for name, fault := range map[string]hot.Fault{
		"NoSync": hot.FaultNoSync, "ShowUnsynced": hot.FaultShowUnsynced, "ProducerApart": hot.FaultProducerApart,
	} {
		t.Run(name, func(t *testing.T) {
			const bound = 60
			for s := range uint64(bound) {
				err := tiertest.Run(context.Background(), tiertest.Options{Seed: s, Fault: fault})
				if f := new(tiertest.Failure); errors.As(err, &f) {
					t.Logf("caught by seed %d: %v", s, f.Err)
					return
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			t.Fatalf("not caught by %d seeds", bound)
		})
	}
}
