package retry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/blob/retry"
)

// clock is the time that passes only in waits, which it notes.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits []time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.now = c.now.Add(d)
	c.waits = append(c.waits, d)
	return nil
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// most is the random source that waits longest.
func most(n int64) int64 { return n - 1 }

func middle(n int64) int64 { return n / 2 }

// stack is a retrying store over faults over memory.
func stack(t *testing.T, opts retry.Options) (*retry.Store, *fault.Store, *clock) {
	t.Helper()
	f := fault.New(mem.New(mem.Options{}))
	c := &clock{now: time.Unix(1e9, 0)}
	opts.Now, opts.Wait = c.Now, c.Wait
	if opts.Rand == nil {
		opts.Rand = most
	}
	t.Cleanup(func() {
		if left := f.Unfired(); len(left) > 0 {
			t.Errorf("faults that did not fire: %+v", left)
		}
	})
	return retry.New(f, opts), f, c
}

func put(t *testing.T, s blob.Store, key, data string, opts blob.PutOptions) error {
	t.Helper()
	info, err := s.Put(t.Context(), key, strings.NewReader(data), opts)
	if err == nil && (info.Key != key || info.Size != int64(len(data)) || info.ETag == "") {
		t.Errorf("put %s: info %+v", key, info)
	}
	return err
}

func TestStore(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return retry.New(mem.New(mem.Options{}), retry.Options{}) }, blobtest.Options{})
}

func TestBackoff(t *testing.T) {
	s, f, c := stack(t, retry.Options{Attempts: 6, MaxWait: time.Second})
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: 6})
	err := put(t, s, "k", "x", blob.PutOptions{})
	if !errors.Is(err, blob.ErrUnavailable) || f.Calls(fault.Put) != 6 {
		t.Errorf("after %d attempts: %v", f.Calls(fault.Put), err)
	}
	want := []time.Duration{100, 200, 400, 800, 1000}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(c.waits, want) {
		t.Errorf("waits %v, want at most %v", c.waits, want)
	}
}

func TestJitterIsFull(t *testing.T) {
	s, f, c := stack(t, retry.Options{Rand: func(int64) int64 { return 0 }})
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
	if err := put(t, s, "k", "x", blob.PutOptions{}); err != nil || c.waits[0] != 0 {
		t.Errorf("waits %v: %v", c.waits, err)
	}
}

func TestRetryAfter(t *testing.T) {
	s, f, c := stack(t, retry.Options{})
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Err: &blob.RetryAfterError{After: 7 * time.Second}})
	if err := put(t, s, "k", "x", blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := blob.ReadAll(t.Context(), s, "k", 0, -1); err != nil || c.waits[0] != 7*time.Second+100*time.Millisecond {
		t.Errorf("waits %v: %v", c.waits, err)
	}
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Err: &blob.RetryAfterError{After: time.Hour}})
	if _, _, err := blob.ReadAll(t.Context(), s, "k", 0, -1); !errors.Is(err, blob.ErrUnavailable) || len(c.waits) != 1 {
		t.Errorf("waits %v: %v", c.waits, err)
	}
}

func TestMaxElapsed(t *testing.T) {
	s, f, c := stack(t, retry.Options{Attempts: 100, MaxElapsed: 3 * time.Second, Breaker: retry.BreakerOptions{Failures: 1000}})
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before, Times: fault.Always})
	start := c.Now()
	wantError(t, put(t, s, "k", "x", blob.PutOptions{}), blob.ErrUnavailable)
	if d := c.Now().Sub(start); d > 3*time.Second || f.Calls(fault.Put) < 4 {
		t.Errorf("tried %d times for %v", f.Calls(fault.Put), d)
	}
}

func TestNotRetried(t *testing.T) {
	for _, e := range []error{blob.ErrNotFound, blob.ErrExists, blob.ErrPrecondition, blob.ErrDenied, blob.ErrNotSupported, blob.ErrRange, blob.ErrKey, errors.New("other")} {
		s, f, _ := stack(t, retry.Options{})
		f.Script(fault.Fault{Kind: fault.Before, Err: e, Times: 4})
		wantError(t, put(t, s, "k", "x", blob.PutOptions{}), e)
		_, _, err := s.Get(t.Context(), "k", 0, -1)
		wantError(t, err, e)
		wantError(t, s.Delete(t.Context(), "k"), e)
		wantError(t, s.List(t.Context(), "", "", func(blob.Info) error { return nil }), e)
		if f.Calls("") != 4 {
			t.Errorf("%v: %d attempts of 4 calls", e, f.Calls(""))
		}
	}
}

func TestCallerLeaves(t *testing.T) {
	s, f, _ := stack(t, retry.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
	_, err := s.Put(ctx, "k", strings.NewReader("x"), blob.PutOptions{})
	if err == nil || f.Calls(fault.Put) != 1 {
		t.Errorf("%d attempts: %v", f.Calls(fault.Put), err)
	}
}

// The reply to a Put is lost, and the next attempt is refused because of it.
func TestOwnObject(t *testing.T) {
	create := blob.PutOptions{IfNoneMatch: true}
	t.Run("create", func(t *testing.T) {
		s, f, _ := stack(t, retry.Options{})
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.After})
		if err := put(t, s, "k", "mine", create); err != nil {
			t.Error(err)
		}
		// Without a lost reply the same bytes are somebody else's.
		wantError(t, put(t, s, "k", "mine", create), blob.ErrExists)
	})
	t.Run("create, comparison fails at first", func(t *testing.T) {
		s, f, _ := stack(t, retry.Options{})
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.After}, fault.Fault{Op: fault.Get, Kind: fault.Before},
			fault.Fault{Op: fault.Get, Kind: fault.Cut, At: 2})
		if err := put(t, s, "k", "mine", create); err != nil {
			t.Error(err)
		}
	})
	t.Run("create, rival was first", func(t *testing.T) {
		for _, rival := range []string{"hers", "hers, longer", ""} {
			s, f, _ := stack(t, retry.Options{})
			if err := put(t, s, "k", rival, create); err != nil {
				t.Fatal(err)
			}
			f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
			wantError(t, put(t, s, "k", "mine", create), blob.ErrExists)
		}
	})
	t.Run("replace", func(t *testing.T) {
		s, f, _ := stack(t, retry.Options{})
		old, err := s.Put(t.Context(), "k", strings.NewReader("old"), create)
		if err != nil {
			t.Fatal(err)
		}
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.After})
		info, err := s.Put(t.Context(), "k", strings.NewReader("new"), blob.PutOptions{IfMatch: old.ETag})
		if err != nil {
			t.Fatal(err)
		}
		// The ETag it returns is that of the object.
		if err := put(t, s, "k", "newer", blob.PutOptions{IfMatch: info.ETag}); err != nil {
			t.Error(err)
		}
	})
	t.Run("replace, object is gone", func(t *testing.T) {
		s, f, _ := stack(t, retry.Options{})
		f.Script(fault.Fault{Op: fault.Put, Kind: fault.Before})
		wantError(t, put(t, s, "k", "new", blob.PutOptions{IfMatch: "e"}), blob.ErrPrecondition)
	})
}

func TestBodyGoesOn(t *testing.T) {
	data := blobtest.Random(1, 300_000)
	for _, kind := range []fault.Kind{fault.Cut, fault.Short} {
		for _, c := range [][2]int64{{0, -1}, {1000, 200_000}, {-250_000, -1}} {
			s, f, _ := stack(t, retry.Options{})
			if err := put(t, s, "k", string(data), blob.PutOptions{}); err != nil {
				t.Fatal(err)
			}
			f.Script(
				fault.Fault{Op: fault.Get, Kind: kind, At: 100_000},
				fault.Fault{Op: fault.Get, Kind: fault.Before},
				fault.Fault{Op: fault.Get, Kind: kind, At: 0},
				fault.Fault{Op: fault.Get, Kind: kind, At: 50_000},
			)
			got, _, err := blob.ReadAll(t.Context(), s, "k", c[0], c[1])
			start, length, _ := blob.Resolve(c[0], c[1], int64(len(data)))
			if err != nil || !bytes.Equal(got, data[start:start+length]) {
				t.Errorf("kind %d, [%d, +%d): %d bytes, %v", kind, c[0], c[1], len(got), err)
			}
		}
	}
}

func TestBodyTricklesForEver(t *testing.T) {
	s, f, _ := stack(t, retry.Options{})
	if err := put(t, s, "k", string(make([]byte, 1000)), blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Cut, At: 1, Times: fault.Always})
	_, _, err := blob.ReadAll(t.Context(), s, "k", 0, -1)
	wantError(t, err, blob.ErrUnavailable)
	if n := f.Calls(fault.Get); n != 5 {
		t.Errorf("%d attempts, want 5", n)
	}
}

// An object that is replaced while it is read must not be sewn together.
func TestBodyOfAnotherObject(t *testing.T) {
	s, f, _ := stack(t, retry.Options{})
	if err := put(t, s, "k", "first version", blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Cut, At: 4})
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := put(t, s, "k", "other version", blob.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	wantError(t, err, blob.ErrUnavailable)
	if string(got) != "firs" {
		t.Errorf("read %q", got)
	}
}

func TestDelete(t *testing.T) {
	s, f, _ := stack(t, retry.Options{})
	f.Script(fault.Fault{Op: fault.Delete, Kind: fault.After, Times: 2})
	if err := s.Delete(t.Context(), "a", "b"); err != nil {
		t.Error(err)
	}
	f.Script(fault.Fault{Op: fault.Delete, Kind: fault.Before})
	err := s.Delete(t.Context(), "a", "\n")
	var de *blob.DeleteError
	if !errors.As(err, &de) || len(de.Failed) != 1 || !errors.Is(de.Failed["\n"], blob.ErrKey) {
		t.Errorf("delete: %v", err)
	}
}

// pages fails each listing after a few keys.
type pages struct{ blob.Store }

func (p pages) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	n := 0
	return p.Store.List(ctx, prefix, after, func(info blob.Info) error {
		if n++; n > 3 {
			return fmt.Errorf("list: %w", blob.ErrUnavailable)
		}
		return fn(info)
	})
}

func TestListGoesOn(t *testing.T) {
	m := mem.New(mem.Options{})
	c := &clock{}
	s := retry.New(pages{m}, retry.Options{Now: c.Now, Wait: c.Wait, Breaker: retry.BreakerOptions{Failures: 1000}})
	var want, got []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("k%02d", i))
		if err := put(t, m, want[i], "x", blob.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.List(t.Context(), "k", "", func(info blob.Info) error {
		got = append(got, info.Key)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d keys: %v", len(got), err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}
