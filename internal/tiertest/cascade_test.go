package tiertest_test

import (
	"context"
	"fmt"
	"testing"

	"firn/internal/tiertest"
)

// family makes a chain of forks with bytes in both tiers, numbered 1 to 3, and a fork
// beside it, 4.
func family() []tiertest.Step {
	step := func(ops ...tiertest.Op) tiertest.Step { return tiertest.Step{Ops: ops} }
	cool := func(n, object int, from, to uint64) []tiertest.Step {
		return []tiertest.Step{
			step(tiertest.Op{Do: "intend", Object: object}),
			step(tiertest.Op{Do: "seal", Stream: n, Object: object, From: from, To: to}),
			step(tiertest.Op{Do: "evict", Stream: n, At: to}),
		}
	}
	fork := func(n, source int, at uint64, size int) tiertest.Step {
		return step(tiertest.Op{
			Do: "fork", New: n, Stream: source, Bucket: "default", ID: fmt.Sprint("fork-", n), Type: "text/plain",
			At: at, Anchored: true, Size: size, Fill: uint64(n),
		})
	}
	steps := []tiertest.Step{step(tiertest.Op{Do: "create", New: 1, Bucket: "default", ID: "a", Type: "text/plain", Size: 300, Fill: 1})}
	steps = append(steps, cool(1, 1, 0, 100)...)
	steps = append(steps, cool(1, 2, 100, 200)...)
	steps = append(steps, fork(2, 1, 150, 200))
	steps = append(steps, cool(2, 3, 150, 300)...)
	steps = append(steps, fork(3, 2, 250, 50), fork(4, 1, 250, 20))
	return steps
}

// TestCascadeCrashesAnywhere crashes at each operation of the disk in each step of a
// cascade of deletions, with all, part and none of what was not synced.
func TestCascadeCrashesAnywhere(t *testing.T) {
	remove := func(n int) tiertest.Op { return tiertest.Op{Do: "delete", Stream: n} }
	trim := func(n int) tiertest.Op { return tiertest.Op{Do: "trim", Stream: n, Size: 1} }
	cascade := []tiertest.Step{
		{Ops: []tiertest.Op{remove(1)}},
		{Ops: []tiertest.Op{remove(2)}},
		{Ops: []tiertest.Op{remove(3), {Do: "append", Stream: 4, Size: 10, Fill: 9}}}, // takes 2 with it
		{Ops: []tiertest.Op{trim(2)}},
		{Ops: []tiertest.Op{remove(4), trim(2)}}, // takes 1 with it
		{Ops: []tiertest.Op{trim(1)}},
		{Ops: []tiertest.Op{trim(1)}, Tick: 120_000},
		{Ops: []tiertest.Op{{Do: "forget", Object: 1}, {Do: "forget", Object: 2}, {Do: "forget", Object: 3}}, Tick: 120_000},
		{Ops: []tiertest.Op{{Do: "create", New: 5, Bucket: "default", ID: "a", Size: 10, Fill: 5}}},
	}
	for crashing := range cascade {
		for at := 1; at <= 5; at++ {
			for _, unsynced := range []int{0, 50, 100} {
				script := family()
				for i, s := range cascade {
					if i == crashing {
						s.Crash = &tiertest.Crash{At: at, Unsynced: unsynced, Seed: uint64(at)}
					}
					script = append(script, s)
				}
				if err := tiertest.Run(context.Background(), tiertest.Options{Script: script}); err != nil {
					t.Fatalf("step %d, operation %d, %d%%: %v", crashing, at, unsynced, err)
				}
			}
		}
	}
}
