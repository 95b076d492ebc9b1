package blobtest_test

import (
	"context"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fault"
	"firn/internal/blob/limit"
	"firn/internal/blob/mem"
	"firn/internal/blob/meter"
	"firn/internal/blob/retry"
)

// stack is what a server uses, over a store that may fail.
func stack(s blob.Store, calls int) blob.Store {
	return retry.New(limit.New(meter.New(s, meter.Options{}), limit.Options{Calls: calls}), retry.Options{
		Attempts: 50,
		Wait:     func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		Breaker:  retry.BreakerOptions{Failures: 1 << 20},
	})
}

func TestStack(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return stack(mem.New(mem.Options{}), 0) }, blobtest.Options{})
}

// With retries the suite holds on a store where every third call fails, replies
// get lost and bodies break off. (Not those of objects that are replaced meanwhile,
// whose keys have no slash: they cannot be continued.)
func TestStackWithFaults(t *testing.T) {
	for _, calls := range []int{0, 1} {
		blobtest.Run(t, func(*testing.T) blob.Store {
			f := fault.New(mem.New(mem.Options{}))
			for i := range 1000 {
				every := 3 * i
				f.Script(
					fault.Fault{Op: fault.Put, Skip: every, Kind: fault.After},
					fault.Fault{Op: fault.Put, Skip: every + 1, Kind: fault.Before},
					fault.Fault{Op: fault.Get, Key: "/", Skip: every, Kind: fault.Cut, At: int64(i % 7)},
					fault.Fault{Op: fault.Get, Key: "/", Skip: every + 1, Kind: fault.Short, At: int64(i % 5)},
					fault.Fault{Op: fault.Delete, Skip: every, Kind: fault.After},
					fault.Fault{Op: fault.List, Skip: every, Kind: fault.Before},
				)
			}
			return stack(f, calls)
		}, blobtest.Options{})
	}
}
