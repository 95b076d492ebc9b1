package fault_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return fault.New(mem.New(mem.Options{})) }, blobtest.Options{})
}

func put(s blob.Store, key string) error {
	_, err := s.Put(context.Background(), key, strings.NewReader("0123456789"), blob.PutOptions{})
	return err
}

func get(s blob.Store, key string) (string, error) {
	r, _, err := s.Get(context.Background(), key, 0, -1)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(r)
	return b.String(), err
}

func TestBothOutcomesOfPut(t *testing.T) {
	for kind, there := range map[fault.Kind]bool{fault.Before: false, fault.After: true} {
		m := mem.New(mem.Options{})
		s := fault.New(m)
		s.Script(fault.Fault{Op: fault.Put, Kind: kind})
		if err := put(s, "k"); !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("kind %d: put: %v", kind, err)
		}
		if _, err := get(m, "k"); (err == nil) != there {
			t.Errorf("kind %d: afterwards: %v", kind, err)
		}
	}
}

func TestBothOutcomesOfDelete(t *testing.T) {
	for kind, there := range map[fault.Kind]bool{fault.Before: true, fault.After: false} {
		m := mem.New(mem.Options{})
		s := fault.New(m)
		put(m, "k")
		s.Script(fault.Fault{Op: fault.Delete, Kind: kind, Err: blob.ErrDenied})
		var de *blob.DeleteError
		if err := s.Delete(t.Context(), "k"); !errors.As(err, &de) || !errors.Is(de.Failed["k"], blob.ErrDenied) {
			t.Errorf("kind %d: delete: %v", kind, err)
		}
		if _, err := get(m, "k"); (err == nil) != there {
			t.Errorf("kind %d: afterwards: %v", kind, err)
		}
	}
}

func TestBodies(t *testing.T) {
	for _, c := range []struct {
		f    fault.Fault
		want string
		err  error
	}{
		{fault.Fault{Kind: fault.Cut, At: 4}, "0123", blob.ErrUnavailable},
		{fault.Fault{Kind: fault.Cut, At: 0, Err: blob.ErrDenied}, "", blob.ErrDenied},
		{fault.Fault{Kind: fault.Short, At: 9}, "012345678", nil},
		{fault.Fault{Kind: fault.Flip, At: 0}, "1123456789", nil},
		{fault.Fault{Kind: fault.Flip, At: 9}, "0123456788", nil},
		{fault.Fault{Kind: fault.Flip, At: 10}, "0123456789", nil},
		{fault.Fault{Kind: fault.Hide}, "", blob.ErrNotFound},
		{fault.Fault{Kind: fault.After}, "", blob.ErrUnavailable},
	} {
		s := fault.New(mem.New(mem.Options{}))
		put(s, "k")
		c.f.Op = fault.Get
		s.Script(c.f)
		if got, err := get(s, "k"); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: %q, %v", c.f, got, err)
		}
		if got, err := get(s, "k"); got != "0123456789" || err != nil {
			t.Errorf("%+v: once more: %q, %v", c.f, got, err)
		}
	}
}

func TestHideFromList(t *testing.T) {
	s := fault.New(mem.New(mem.Options{}))
	for _, k := range []string{"a", "b", "c"} {
		put(s, k)
	}
	s.Script(fault.Fault{Op: fault.List, Key: "b", Kind: fault.Hide, Times: fault.Always})
	var keys []string
	s.List(t.Context(), "", "", func(info blob.Info) error {
		keys = append(keys, info.Key)
		return nil
	})
	if !slices.Equal(keys, []string{"a", "c"}) || len(s.Unfired()) != 0 {
		t.Errorf("listed %q, unfired %v", keys, s.Unfired())
	}
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fault.New(mem.New(mem.Options{}))
		gate := make(chan struct{})
		s.Script(fault.Fault{Op: fault.Put, Kind: fault.Stall, Gate: gate}, fault.Fault{Op: fault.Put, Kind: fault.Stall})
		done := make(chan error, 1)
		go func() { done <- put(s, "k") }()
		synctest.Wait()
		if len(done) != 0 || s.Calls(fault.Put) != 1 {
			t.Error("call was not held")
		}
		close(gate)
		if err := <-done; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, err := s.Put(ctx, "k", strings.NewReader("x"), blob.PutOptions{})
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestScript(t *testing.T) {
	s := fault.New(mem.New(mem.Options{}))
	s.Script(
		fault.Fault{Op: fault.Put, Key: "x", Skip: 1, Times: 2, Kind: fault.Before, Err: blob.ErrDenied},
		fault.Fault{Kind: fault.Before, Key: "y", Err: blob.ErrCorrupt},
	)
	for i, c := range []struct {
		key  string
		want error
	}{{"x1", nil}, {"a", nil}, {"x2", blob.ErrDenied}, {"y", blob.ErrCorrupt}, {"xx", blob.ErrDenied}, {"x", nil}, {"y", nil}} {
		if err := put(s, c.key); !errors.Is(err, c.want) {
			t.Errorf("put %d of %q: %v, want %v", i, c.key, err, c.want)
		}
	}
	if len(s.Unfired()) != 0 || s.Calls(fault.Put) != 7 || s.Calls("") != 7 || s.Calls(fault.Get) != 0 {
		t.Errorf("unfired %v, %d puts", s.Unfired(), s.Calls(fault.Put))
	}
	s.Script(fault.Fault{Op: fault.List, Kind: fault.Before, Times: 2}, fault.Fault{Op: fault.Get, Kind: fault.Before, Times: fault.Always})
	s.List(t.Context(), "", "", nil)
	if len(s.Unfired()) != 2 {
		t.Errorf("unfired %v, want both", s.Unfired())
	}
	s.Clear()
	if len(s.Unfired()) != 0 {
		t.Error("cleared script has faults")
	}
}

func TestSenselessFaults(t *testing.T) {
	for _, f := range []fault.Fault{
		{},
		{Op: fault.Put, Kind: fault.Cut},
		{Op: fault.Get, Kind: fault.Flip, At: -1},
		{Op: fault.Delete, Kind: fault.Hide},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was taken", f)
				}
			}()
			fault.New(mem.New(mem.Options{})).Script(f)
		}()
	}
}
