package cold_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/pkg/stream"
	"firn/tier/cold"
)

// every is how long the fence stays.
const every = 10 * time.Minute

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1_700_000_000_000)
	return c
}

func record(t *testing.T, b blob.Store) cold.Owner {
	t.Helper()
	var o cold.Owner
	data, _, err := blob.ReadAll(context.Background(), b, "owner", 0, -1)
	if err != nil || json.Unmarshal(data, &o) != nil {
		t.Fatalf("owner record %q, %v", data, err)
	}
	return o
}

func check(t *testing.T, s *cold.Store) {
	t.Helper()
	if err := s.CheckOwner(context.Background()); err != nil {
		t.Fatalf("the owner is refused: %v", err)
	}
}

// A server runs for months; a backup of last night must be told from its directory.
func TestOwnerMarksWhileItRuns(t *testing.T) {
	for what, wrap := range map[string]func(blob.Store) blob.Store{
		"with conditions":    func(b blob.Store) blob.Store { return b },
		"without conditions": func(b blob.Store) blob.Store { return unconditional{b} },
	} {
		t.Run(what, func(t *testing.T) {
			c := newClock()
			blobs := wrap(mem.New(mem.Options{}))
			s := open(t, blobs, cold.Options{StoreID: "a", Now: c.now})
			dir := &directory{}
			if err := dir.claim(s); err != nil {
				t.Fatal(err)
			}
			since, backup := c.now(), *dir

			c.advance(every - time.Millisecond)
			check(t, s)
			if dir.fence != 1 || record(t, blobs).Fence != 1 {
				t.Fatalf("fence %d too early", dir.fence)
			}
			c.advance(time.Millisecond)
			check(t, s)
			check(t, s)
			if o := record(t, blobs); dir.fence != 2 || o.Fence != 2 || !o.Since.Equal(since) {
				t.Fatalf("fence %d, record %+v; want 2, since %v", dir.fence, o, since)
			}
			c.advance(every)
			check(t, s)
			if dir.fence != 3 {
				t.Errorf("fence %d after twice the time, want 3", dir.fence)
			}

			restored := open(t, blobs, cold.Options{StoreID: "a", Now: c.now})
			if err := backup.claim(restored); !errors.Is(err, cold.ErrStale) {
				t.Errorf("claim with the backup: %v, want ErrStale", err)
			}
			again := open(t, blobs, cold.Options{StoreID: "a", Now: c.now})
			if err := dir.claim(again); err != nil {
				t.Errorf("claim with the directory itself: %v", err)
			}
			c.advance(every)
			if err := s.CheckOwner(context.Background()); !errors.Is(err, cold.ErrFenced) {
				t.Errorf("superseded process: %v, want ErrFenced", err)
			}
			check(t, again)
		})
	}
}

// However a mark fails, the owner stays the owner, and its directory is not behind.
func TestOwnerOutlivesAFailedMark(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"put refused":             {Op: fault.Put, Kind: fault.Before},
		"put done, reply lost":    {Op: fault.Put, Kind: fault.After},
		"put done, not read back": {Op: fault.Get, Skip: 1, Kind: fault.Before},
	} {
		t.Run(what, func(t *testing.T) {
			c := newClock()
			r := newRig(t, cold.Options{Now: c.now})
			dir := &directory{}
			if err := dir.claim(r.Store); err != nil {
				t.Fatal(err)
			}
			c.advance(every)
			r.faults.Script(f)
			if err := r.CheckOwner(context.Background()); !errors.Is(err, stream.ErrColdUnavailable) {
				t.Errorf("check gave %v, want ErrColdUnavailable", err)
			}
			check(t, r.Store)
			if o := record(t, r.blobs); o.Fence != dir.fence {
				t.Errorf("record has fence %d, the directory %d", o.Fence, dir.fence)
			}
			n := r.faults.Calls(fault.Put)
			check(t, r.Store)
			if m := r.faults.Calls(fault.Put); m != n {
				t.Errorf("a check right after the mark made %d puts", m-n)
			}
		})
	}
}

// late loses its second put, and makes it when the third one comes.
type late struct {
	blob.Store
	puts int
	lost func()
}

func (l *late) Put(ctx context.Context, key string, body blob.Body, o blob.PutOptions) (blob.Info, error) {
	l.puts++
	switch l.puts {
	case 2:
		data, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
		if err != nil {
			return blob.Info{}, err
		}
		l.lost = func() { _, _ = l.Store.Put(ctx, key, bytes.NewReader(data), o) }
		return blob.Info{}, blob.ErrUnavailable
	case 3:
		l.lost()
	}
	return l.Store.Put(ctx, key, body, o)
}

func TestOwnerKnowsItsOwnLateMark(t *testing.T) {
	c := newClock()
	b := &late{Store: mem.New(mem.Options{})}
	s := open(t, b, cold.Options{Now: c.now})
	dir := &directory{}
	if err := dir.claim(s); err != nil {
		t.Fatal(err)
	}
	c.advance(every)
	if err := s.CheckOwner(context.Background()); !errors.Is(err, stream.ErrColdUnavailable) {
		t.Fatalf("check gave %v, want ErrColdUnavailable", err)
	}
	check(t, s)
	check(t, s)
	if o := record(t, b); b.puts != 3 || o.Fence > dir.fence {
		t.Errorf("%d puts, fence %d, the directory knows of %d", b.puts, o.Fence, dir.fence)
	}
}

// A rival that claims between the look and the mark is not overwritten.
func TestOwnerDoesNotMarkOverARival(t *testing.T) {
	ctx := context.Background()
	c := newClock()
	blobs := mem.New(mem.Options{})
	s := open(t, blobs, cold.Options{Now: c.now})
	rival := open(t, blobs, cold.Options{Now: c.now})
	dir := &directory{}
	claim := cold.ClaimOptions{Remember: func(context.Context, uint64) error {
		if dir.fence++; dir.fence == 2 {
			return (&directory{fence: 1}).claim(rival)
		}
		return nil
	}}
	if err := s.Claim(ctx, claim); err != nil {
		t.Fatal(err)
	}
	c.advance(every)
	if err := s.CheckOwner(ctx); !errors.Is(err, cold.ErrFenced) {
		t.Errorf("check gave %v, want ErrFenced", err)
	}
	check(t, rival)
}

func TestOwnerDoesNotMarkWhatTheDirectoryCannotRemember(t *testing.T) {
	c := newClock()
	r := newRig(t, cold.Options{Now: c.now})
	full := errors.New("disk is full")
	var remember error
	err := r.Claim(context.Background(), cold.ClaimOptions{Remember: func(context.Context, uint64) error { return remember }})
	if err != nil {
		t.Fatal(err)
	}
	c.advance(every)
	remember = full
	n := r.faults.Calls(fault.Put)
	if err := r.CheckOwner(context.Background()); !errors.Is(err, full) || r.faults.Calls(fault.Put) != n {
		t.Errorf("check gave %v after %d puts, want none", err, r.faults.Calls(fault.Put)-n)
	}
}
