package sim_test

import (
	"context"
	"errors"
	"flag"
	"testing"

	"firn/internal/sim"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

var rates = flag.Int("rates", 0, "play all of so many seeds with each planted fault, and count those that show it")

// planted are faults of firn, each with the number of seeds that must show it.
// docs/testing.md says what they are and how often they were found.
var planted = []struct {
	name  string
	fault sim.Planted
	seeds int
}{
	{"answer before the sync", sim.Planted{Hot: hot.FaultNoSync}, 50},
	{"show before the sync", sim.Planted{Hot: hot.FaultShowUnsynced}, 400},
	{"producer state in a batch of its own", sim.Planted{Hot: hot.FaultProducerApart}, 400},
	{"seal without comparing the sealed mark", sim.Planted{Hot: hot.FaultSealAnywhere}, 400},
	{"seal into an object that is given up", sim.Planted{Hot: hot.FaultClaimAny}, 400},
	{"seal into a successor of the same name", sim.Planted{World: sim.FaultSameIncarnation}, 400},
	{"evict what is not sealed", sim.Planted{Hot: hot.FaultEvictUnsealed}, 50},
	{"trim a segment across the floor", sim.Planted{Hot: hot.FaultTrimAhead}, 400},
	{"trim what forks need", sim.Planted{Hot: hot.FaultForgetForks}, 400},
	{"retire an object that is still named", sim.Planted{Hot: hot.FaultRetireNamed}, 400},
	{"keep the name of a deleted stream", sim.Planted{Hot: hot.FaultKeepName}, 50},
	{"sweep without a grace", sim.Planted{World: sim.FaultNoGrace}, 400},
	{"forget objects before they are gone", sim.Planted{Cold: cold.FaultDeleteUnconfirmed}, 400},
	{"upload whatever became of the intent", sim.Planted{Hot: hot.FaultForgetIntent}, 400},
	{"take a put for done unseen", sim.Planted{Cold: cold.FaultUnverified}, 400},
	{"read frames that fail their checks", sim.Planted{Cold: cold.FaultUnchecked}, 400},
	{"cache frames by their offset alone", sim.Planted{Cold: cold.FaultCacheByOffset}, 50},
	{"start on an older copy of the disk", sim.Planted{Cold: cold.FaultAnyFence}, 400},
	{"show a snapshot before its blob is safe", sim.Planted{Tier: tier.FaultPublishFirst}, 400},
	{"skip a byte where the tiers meet", sim.Planted{Tier: tier.FaultEdge}, 400},
	{"bootstrap over a cold gap", sim.Planted{Tier: tier.FaultColdGap}, 50},
}

// TestPlantedFaultsAreFound shows what the harness can see.
func TestPlantedFaultsAreFound(t *testing.T) {
	encoders := sim.NewEncoders()
	for _, p := range planted {
		if (raced || testing.Short()) && p.seeds > 100 {
			continue // those that take longer are left to a run without
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			found, seeds := 0, p.seeds
			if *rates > 0 {
				seeds = *rates
			}
			for seed := range uint64(seeds) {
				err := sim.Run(context.Background(), sim.Options{Seed: seed, Fault: p.fault, Encoders: encoders})
				f := new(sim.Failure)
				if err == nil {
					continue
				}
				if !errors.As(err, &f) {
					t.Fatal(err)
				}
				if found++; found == 1 {
					t.Logf("found by seed %d, step %d: %v", seed, len(f.Script.Steps), f.Err)
				}
				if *rates == 0 {
					return
				}
			}
			if t.Logf("found by %d seeds of %d", found, seeds); found == 0 {
				t.Error("not found")
			}
		})
	}
}
