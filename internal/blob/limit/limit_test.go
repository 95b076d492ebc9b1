package limit_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fault"
	"firn/internal/blob/limit"
	"firn/internal/blob/mem"
)

func TestStore(t *testing.T) {
	for _, calls := range []int{0, 1} {
		blobtest.Run(t, func(*testing.T) blob.Store {
			return limit.New(mem.New(mem.Options{}), limit.Options{Calls: calls})
		}, blobtest.Options{})
	}
}

// ops makes each kind of call on a store.
var ops = map[fault.Op]func(ctx context.Context, s blob.Store) error{
	fault.Put: func(ctx context.Context, s blob.Store) error {
		_, err := s.Put(ctx, "k", strings.NewReader("x"), blob.PutOptions{})
		return err
	},
	fault.Get: func(ctx context.Context, s blob.Store) error {
		_, _, err := blob.ReadAll(ctx, s, "k", 0, -1)
		return err
	},
	fault.Delete: func(ctx context.Context, s blob.Store) error { return s.Delete(ctx, "other") },
	fault.List: func(ctx context.Context, s blob.Store) error {
		return s.List(ctx, "", "", func(blob.Info) error { return nil })
	},
}

func TestLimit(t *testing.T) {
	for op, call := range ops {
		t.Run(string(op), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const calls, limited = 10, 3
				f := fault.New(mem.New(mem.Options{}))
				s := limit.New(f, limit.Options{Calls: limited})
				if err := ops[fault.Put](t.Context(), s); err != nil {
					t.Fatal(err)
				}
				was := f.Calls("")
				gate := make(chan struct{})
				f.Script(fault.Fault{Op: op, Kind: fault.Stall, Gate: gate, Times: fault.Always})
				errs := make(chan error)
				for range calls {
					go func() { errs <- call(t.Context(), s) }()
				}
				synctest.Wait()
				if n := f.Calls("") - was; n != limited {
					t.Errorf("%d calls run at once, want %d", n, limited)
				}
				// Waiting for a slot ends with the context, and leaves nothing behind.
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := call(ctx, s); !errors.Is(err, context.Canceled) {
					t.Errorf("canceled call: %v", err)
				}
				close(gate)
				for range calls {
					if err := <-errs; err != nil {
						t.Error(err)
					}
				}
				if n := f.Calls("") - was; n != calls {
					t.Errorf("%d calls came through, want %d", n, calls)
				}
			})
		})
	}
}

// The slot of a body is free once the body was closed or has ended, however often
// either happens.
func TestBodyHoldsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fault.New(mem.New(mem.Options{}))
		s := limit.New(f, limit.Options{Calls: 1})
		if err := ops[fault.Put](t.Context(), s); err != nil {
			t.Fatal(err)
		}
		for _, end := range []func(io.ReadCloser){
			func(r io.ReadCloser) { r.Close() },
			func(r io.ReadCloser) { io.Copy(io.Discard, r) },
		} {
			r, _, err := s.Get(t.Context(), "k", 0, -1)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- ops[fault.Get](t.Context(), s) }()
			synctest.Wait()
			if len(done) != 0 {
				t.Error("a second call ran beside an open body")
			}
			end(r)
			if err := <-done; err != nil {
				t.Error(err)
			}
			r.Close()
			r.Close()
		}
		f.Script(fault.Fault{Kind: fault.Before, Times: 4})
		for _, call := range ops { // a failed call gives its slot back as well
			call(t.Context(), s)
		}
		if err := ops[fault.Get](t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}
