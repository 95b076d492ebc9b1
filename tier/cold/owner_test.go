package cold_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// directory is a data directory: what it knows of fences outlives a process.
type directory struct{ fence uint64 }

func (d *directory) claim(s *cold.Store) error {
	return s.Claim(context.Background(), cold.ClaimOptions{
		Fence:    d.fence,
		Remember: func(_ context.Context, f uint64) error { d.fence = f; return nil },
	})
}

func TestOwnerClaims(t *testing.T) {
	for what, wrap := range map[string]func(blob.Store) blob.Store{
		"with conditions":    func(b blob.Store) blob.Store { return b },
		"without conditions": func(b blob.Store) blob.Store { return unconditional{b} },
	} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			blobs := wrap(mem.New(mem.Options{}))
			dir := &directory{}
			first := open(t, blobs, cold.Options{StoreID: "a"})
			if err := first.CheckOwner(ctx); err != nil {
				t.Fatalf("a store that claims nothing: %v", err)
			}
			if err := dir.claim(first); err != nil || dir.fence != 1 {
				t.Fatalf("claim on an empty prefix: %v, fence %d", err, dir.fence)
			}
			if err := first.CheckOwner(ctx); err != nil {
				t.Fatalf("the owner is refused: %v", err)
			}

			foreign := open(t, blobs, cold.Options{StoreID: "b"})
			if err := (&directory{}).claim(foreign); !errors.Is(err, cold.ErrForeign) {
				t.Errorf("foreign claim: %v, want ErrForeign", err)
			}
			if err := foreign.CheckOwner(ctx); !errors.Is(err, cold.ErrForeign) {
				t.Errorf("foreign check: %v, want ErrForeign", err)
			}

			backup := *dir
			second := open(t, blobs, cold.Options{StoreID: "a"})
			if err := dir.claim(second); err != nil || dir.fence != 2 {
				t.Fatalf("claim after a restart: %v, fence %d", err, dir.fence)
			}
			if err := first.CheckOwner(ctx); !errors.Is(err, cold.ErrFenced) {
				t.Errorf("superseded process: %v, want ErrFenced", err)
			}
			restored := open(t, blobs, cold.Options{StoreID: "a"})
			if err := backup.claim(restored); !errors.Is(err, cold.ErrStale) || backup.fence != 1 {
				t.Errorf("claim with an old data directory: %v, fence %d; want ErrStale", err, backup.fence)
			}
			if err := second.CheckOwner(ctx); err != nil {
				t.Errorf("the owner is refused after failed claims: %v", err)
			}

			if err := blobs.Delete(ctx, "owner"); err != nil {
				t.Fatal(err)
			}
			if err := second.CheckOwner(ctx); !errors.Is(err, cold.ErrFenced) {
				t.Errorf("owner record gone: %v, want ErrFenced", err)
			}
		})
	}
}

func TestOwnerRefusesAPrefixThatHoldsSomething(t *testing.T) {
	r := newRig(t, cold.Options{})
	r.put(t, 0, frameBytes)
	dir := &directory{}
	if err := dir.claim(r.Store); !errors.Is(err, cold.ErrForeign) || dir.fence != 0 {
		t.Errorf("claim of a used prefix: %v, fence %d; want ErrForeign", err, dir.fence)
	}
	for what, record := range map[string]string{
		"garbage": "not json", "empty": "", "of a later release": `{"version":2,"store":"a","fence":1}`,
	} {
		if _, err := r.blobs.Put(context.Background(), "owner", strings.NewReader(record), blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := dir.claim(r.Store); !errors.Is(err, cold.ErrForeign) {
			t.Errorf("record %s: %v, want ErrForeign", what, err)
		}
	}
}

func TestOwnerOfTwoRacingClaimsIsOne(t *testing.T) {
	for what, wrap := range map[string]func(blob.Store) blob.Store{
		"with conditions":    func(b blob.Store) blob.Store { return b },
		"without conditions": func(b blob.Store) blob.Store { return unconditional{b} },
	} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			f := fault.New(mem.New(mem.Options{}))
			// Both see an empty prefix before either writes.
			gate := make(chan struct{})
			f.Script(fault.Fault{Op: fault.List, Kind: fault.Stall, Gate: gate, Times: 2})
			stores := []*cold.Store{open(t, wrap(f), cold.Options{StoreID: "a"}), open(t, wrap(f), cold.Options{StoreID: "b"})}
			var claims sync.WaitGroup
			claimed := make([]error, 2)
			for i, s := range stores {
				claims.Go(func() { claimed[i] = (&directory{}).claim(s) })
			}
			close(gate)
			claims.Wait()
			owners := 0
			for i, s := range stores {
				err := s.CheckOwner(ctx)
				if claimed[i] == nil && err == nil {
					owners++
				}
				if err != nil && !errors.Is(err, cold.ErrFenced) && !errors.Is(err, cold.ErrForeign) {
					t.Errorf("store %d: claim %v, check %v", i, claimed[i], err)
				}
			}
			if owners != 1 {
				t.Errorf("%d owners, want 1", owners)
			}
		})
	}
}

// However the outcome of a write is lost, the next check claims again and succeeds.
func TestOwnerClaimsWhenTheStoreIsBack(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"away":                     {Kind: fault.Before},
		"no listing":               {Op: fault.List, Kind: fault.Before},
		"put refused":              {Op: fault.Put, Kind: fault.Before},
		"put done, reply lost":     {Op: fault.Put, Kind: fault.After},
		"put done, not read back":  {Op: fault.Get, Skip: 1, Kind: fault.Before},
		"put done, read back torn": {Op: fault.Get, Skip: 1, Kind: fault.Short, At: 20},
	} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			r := newRig(t, cold.Options{})
			r.faults.Script(f)
			dir := &directory{}
			if err := dir.claim(r.Store); !cold.IsUnavailable(err) {
				t.Fatalf("claim: %v, want one that may succeed later", err)
			}
			for range 2 {
				if err := r.CheckOwner(ctx); err != nil {
					t.Fatalf("check when the store is back: %v", err)
				}
			}
			o := record(t, r.blobs)
			if o.Fence != dir.fence || o.Store != "0123456789abcdef" {
				t.Errorf("record %+v, the directory knows of fence %d", o, dir.fence)
			}
			r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before})
			if err := r.CheckOwner(ctx); !errors.Is(err, stream.ErrColdUnavailable) {
				t.Errorf("check while the store is away: %v, want ErrColdUnavailable", err)
			}
		})
	}
}

func TestOwnerDoesNotClaimWhatTheDirectoryCannotRemember(t *testing.T) {
	r := newRig(t, cold.Options{})
	full := errors.New("disk is full")
	err := r.Claim(context.Background(), cold.ClaimOptions{Remember: func(context.Context, uint64) error { return full }})
	if !errors.Is(err, full) || r.faults.Calls(fault.Put) != 0 {
		t.Errorf("claim: %v after %d puts, want none", err, r.faults.Calls(fault.Put))
	}
}

func TestDeniedIsNotUnavailable(t *testing.T) {
	r := newRig(t, cold.Options{})
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Err: blob.ErrDenied})
	if err := (&directory{}).claim(r.Store); err == nil || cold.IsUnavailable(err) {
		t.Errorf("claim without rights: %v, want one that waiting does not help", err)
	}
}
