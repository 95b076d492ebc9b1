package retry_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/blob/retry"
)

// Many callers that never give up meet a store that fails for ten minutes. The
// store must be left in peace, and be in use again soon after.
func TestNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const outage = 10 * time.Minute
		f := fault.New(mem.New(mem.Options{}))
		s := retry.New(f, retry.Options{})
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always, Err: &blob.RetryAfterError{After: time.Second}})

		start := time.Now()
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for put(t, s, "k", "x", blob.PutOptions{}) != nil {
					time.Sleep(100 * time.Millisecond) // an impatient caller
				}
			})
		}
		time.Sleep(10 * time.Second)
		early := f.Calls(fault.Put)
		if early > 100 {
			t.Errorf("%d requests in the first ten seconds", early)
		}
		time.Sleep(outage - 10*time.Second)
		if n := f.Calls(fault.Put) - early; n > 40 || n < 15 {
			t.Errorf("%d requests in the rest of the outage, want about one in thirty seconds", n)
		}
		f.Clear()
		wg.Wait()
		if d := time.Since(start) - outage; d > time.Minute {
			t.Errorf("back %v after the outage", d)
		}
		if err := put(t, s, "k", "x", blob.PutOptions{}); errors.Is(err, blob.ErrUnavailable) {
			t.Error(err)
		}
	})
}
