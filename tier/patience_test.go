package tier_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

// A reader of an object store that does not answer is told to come again. What was
// asked for comes in the end, and the next reader has it at once.
func TestReadersAreToldWhenTheObjectStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, tier.Options{})
		r.create("a", "text/plain", "hello")
		r.cool("a", 5)
		gate := make(chan struct{})
		r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Stall, Gate: gate})
		began := time.Now()
		if _, err := r.Read(bg, named("a"), stream.Start{}); !errors.Is(err, stream.ErrColdUnavailable) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("the reader waited for %v", took)
		}
		close(gate)
		synctest.Wait()
		before := r.faults.Calls(fault.Get)
		p, err := r.Read(bg, named("a"), stream.Start{})
		if err != nil || string(p.Data) != "hello" {
			t.Errorf("later: %q, %v", p.Data, err)
		}
		if n := r.faults.Calls(fault.Get) - before; n != 0 {
			t.Errorf("%d GETs for what has come", n)
		}
	})
}
