package tiertest_test

import (
	"context"
	"errors"
	"flag"
	"testing"

	"firn/internal/tiertest"
	"firn/tier/hot"
)

var (
	seed  = flag.Uint64("seed", 0, "first seed of the random runs")
	seeds = flag.Int("seeds", 200, "how many random runs")
	steps = flag.Int("steps", 40, "steps of a random run")
)

func TestRandom(t *testing.T) {
	for i := range uint64(*seeds) {
		if err := tiertest.Run(context.Background(), tiertest.Options{Seed: *seed + i, Steps: *steps}); err != nil {
			t.Fatal(err)
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
