package retry_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/retry"
)

// once is a stack that tries each call once, so that calls are attempts.
func once(t *testing.T) (*retry.Store, *fault.Store, *clock) {
	return stack(t, retry.Options{Attempts: 1, Rand: middle})
}

func call(t *testing.T, s blob.Store) error {
	t.Helper()
	return put(t, s, "k", "x", blob.PutOptions{})
}

func TestBreakerOpensAndCloses(t *testing.T) {
	s, f, c := once(t)
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: 12})
	for range 9 {
		call(t, s)
	}
	if n := f.Calls(fault.Put); n != 9 {
		t.Fatalf("%d calls came through, want 9", n)
	}
	call(t, s) // the tenth failure opens it
	// Each period is twice the one before; its last moment is still closed to
	// calls, and then one comes through.
	for i, open := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		c.advance(open - 1)
		err := call(t, s)
		var ra *blob.RetryAfterError
		if !errors.As(err, &ra) || ra.After != 1 || f.Calls(fault.Put) != 10+i {
			t.Fatalf("open for %v: %d calls came through, last error %v", open, f.Calls(fault.Put), err)
		}
		c.advance(1)
		err = call(t, s)
		if f.Calls(fault.Put) != 11+i || (err == nil) != (i == 2) {
			t.Fatalf("probe %d: %d calls came through, error %v", i, f.Calls(fault.Put), err)
		}
	}
	for range 100 {
		if err := call(t, s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBreakerOpensAtHalf(t *testing.T) {
	s, f, _ := once(t)
	came := 0
	for i := range 200 {
		if i%2 == 0 {
			f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
		}
		before := f.Calls(fault.Put)
		call(t, s)
		if f.Calls(fault.Put) > before {
			came++
		}
		f.Clear()
	}
	if came > 20 {
		t.Errorf("%d calls came through while half of them failed", came)
	}
}

func TestBreakerForgets(t *testing.T) {
	s, f, c := once(t)
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	for range 50 { // rare failures do not add up
		call(t, s)
		c.advance(4 * time.Second)
	}
	if n := f.Calls(fault.Put); n != 50 {
		t.Errorf("%d calls came through, want 50", n)
	}
}

func TestBreakerIgnoresRefusals(t *testing.T) {
	s, f, _ := once(t)
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Err: blob.ErrDenied, Times: 100})
	for range 100 {
		wantError(t, call(t, s), blob.ErrDenied)
	}
}

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, c := once(t)
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: 10})
		for range 10 {
			call(t, s)
		}
		c.advance(time.Second)
		gate := make(chan struct{})
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.Stall, Gate: gate})
		probe := make(chan error)
		go func() {
			_, err := s.Put(t.Context(), "k", strings.NewReader("x"), blob.PutOptions{})
			probe <- err
		}()
		synctest.Wait() // the probe is on its way
		wantError(t, call(t, s), blob.ErrUnavailable)
		if n := f.Calls(fault.Put); n != 11 {
			t.Errorf("%d calls came through, want ten and the probe", n)
		}
		close(gate)
		if err := <-probe; err != nil {
			t.Fatal(err)
		}
		if err := call(t, s); err != nil {
			t.Error(err)
		}
	})
}

// A probe whose caller leaves says nothing, and must not block the next one.
func TestBreakerProbeIsAbandoned(t *testing.T) {
	s, f, c := once(t)
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: 10})
	for range 10 {
		call(t, s)
	}
	c.advance(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, "k", strings.NewReader("x"), blob.PutOptions{}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := call(t, s); err != nil {
		t.Error(err)
	}
}

// While the breaker is open, a call neither waits nor tries again.
func TestBreakerEndsRetries(t *testing.T) {
	s, f, c := stack(t, retry.Options{})
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	for range 20 {
		wantError(t, call(t, s), blob.ErrUnavailable)
	}
	// 5 + 5 attempts open it; each call waits four times.
	if n := f.Calls(fault.Put); n != 10 {
		t.Errorf("%d attempts, want 10", n)
	}
	if len(c.waits) > 9 {
		t.Errorf("%d waits", len(c.waits))
	}
}
