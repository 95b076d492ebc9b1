package hot_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// base returns the entries of a copy of everything.
func base(t *testing.T, s *hot.Store) []hot.CopyEntry {
	t.Helper()
	s.TrackChanges()
	c := s.BeginCopy(true)
	defer c.End(true)
	var list []hot.CopyEntry
	if err := c.Entries(func(e hot.CopyEntry) error {
		list = append(list, hot.CopyEntry{Op: e.Op, Key: bytes.Clone(e.Key), Value: bytes.Clone(e.Value)})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func rebuilding(t *testing.T, fs vfs.FS, entries []hot.CopyEntry) *hot.Rebuild {
	t.Helper()
	r, err := hot.StartRebuild("data/hot", hot.Options{FS: fs, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := r.Load(e); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func reconcile(t *testing.T, r *hot.Rebuild) {
	t.Helper()
	if err := r.Loaded(); err != nil {
		t.Fatal(err)
	}
	err := r.Reconcile(hot.ReconcileOptions{
		Stream: func(hot.Rebuilt) error { return nil }, Lost: func(hot.Found, string) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Until it is finished a rebuild leaves nothing that could be taken for a store; from
// then on it is durable.
func TestCrashInRebuild(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	a := create(t, s, "a")
	if _, err := s.Append(context.Background(), &hot.Append{ID: a.ID, ContentType: "text/plain", Payload: []byte("kept")}); err != nil {
		t.Fatal(err)
	}
	entries := base(t, s)
	mem := vfs.NewCrashableMem()
	r := rebuilding(t, mem, entries)
	reconcile(t, r)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if _, err := crashed.Stat("data/hot"); err == nil {
		t.Error("before it is finished there is a store")
	}
	again := rebuilding(t, crashed, entries) // what was left is in nobody's way
	if err := again.Abandon(); err != nil {
		t.Fatal(err)
	}
	if names, err := crashed.List("data"); err == nil && len(names) > 0 {
		t.Errorf("an abandoned rebuild leaves %v", names)
	}
	if _, err := hot.StartRebuild("data/hot", hot.Options{FS: mem}); !errors.Is(err, hot.ErrLocked) {
		t.Errorf("beside one that runs: %v", err)
	}
	if err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	mem = mem.CrashClone(vfs.CrashCloneCfg{})
	if _, err := hot.StartRebuild("data/hot", hot.Options{FS: mem}); !errors.Is(err, hot.ErrNotEmpty) {
		t.Errorf("over a store: %v", err)
	}
	is, err := hot.Open("data/hot", hot.Options{FS: mem, MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer is.Close()
	if is.ID() != s.ID() {
		t.Errorf("store %s has become %s", s.ID(), is.ID())
	}
	v := is.View()
	defer v.Close()
	rec, err := v.Incarnation(a.ID)
	if err != nil || rec.Tail != 4 || rec.Life <= a.Life || len(rec.Former) != 1 || rec.Former[0] != (stream.Former{Life: a.Life, Upto: 4}) {
		t.Fatalf("rebuilt is %+v, %v", rec, err)
	}
	if b, err := v.Data(nil, a.ID, 0, 4); err != nil || string(b) != "kept" {
		t.Errorf("it holds %q, %v", b, err)
	}
}

func TestRebuildRefusesWhatItDoesNotKnow(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	create(t, s, "a")
	entries := base(t, s)
	change := func(key, value string) []hot.CopyEntry {
		list := append([]hot.CopyEntry{}, entries...)
		for i, e := range list {
			if strings.HasPrefix(string(e.Key), key) {
				list[i].Value = []byte(value)
			}
		}
		return list
	}
	for name, c := range map[string]struct {
		entries []hot.CopyEntry
		want    error
		says    string
	}{
		"a newer format": {change("mformat", "firn-hot-3"), hot.ErrFormat, "firn-hot-3"},
		"nothing":        {nil, hot.ErrDamaged, "no format"},
		"a newer state":  {change("mstate", "\x09"), nil, "version 9"},
		"a newer record": {change("s", "\x09"), nil, "version 9"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rebuilding(t, vfs.NewMem(), c.entries)
			err := r.Loaded()
			if err == nil {
				err = r.Reconcile(hot.ReconcileOptions{})
			}
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if err := r.Abandon(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A copy without the bytes that it says are unsealed is not taken for whole.
func TestRebuildMissesBytes(t *testing.T) {
	s := open(t, vfs.NewMem())
	defer s.Close()
	a := create(t, s, "a")
	if _, err := s.Append(context.Background(), &hot.Append{ID: a.ID, ContentType: "text/plain", Payload: []byte("gone")}); err != nil {
		t.Fatal(err)
	}
	var entries []hot.CopyEntry
	for _, e := range base(t, s) {
		if e.Key[0] != 'd' {
			entries = append(entries, e)
		}
	}
	r := rebuilding(t, vfs.NewMem(), entries)
	if err := r.Loaded(); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(hot.ReconcileOptions{}); !errors.Is(err, hot.ErrDamaged) || !strings.Contains(err.Error(), "default/a") {
		t.Errorf("got %v", err)
	}
	if err := r.Abandon(); err != nil {
		t.Error(err)
	}
}
