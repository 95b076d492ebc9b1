package hot_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// entries are what a copy takes, as "op kind" with counts.
func entries(t *testing.T, c *hot.Copy) map[string]int {
	t.Helper()
	n := make(map[string]int)
	if err := c.Entries(func(e hot.CopyEntry) error {
		n[fmt.Sprintf("%d%c", e.Op, e.Key[0])]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCopyTakesWhatHasChanged(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	a := create(t, s, "a")
	s.TrackChanges()
	write := func(id stream.ID, text, producer string) {
		t.Helper()
		c := &hot.Append{ID: id, ContentType: "text/plain", Payload: []byte(text)}
		if producer != "" {
			c.Producer = &stream.Producer{ID: producer}
		}
		if _, err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	write(a.ID, "one", "")

	c := s.BeginCopy(false)
	if !c.Base {
		t.Error("the first copy is no base")
	}
	write(a.ID, "two", "p") // after its view
	if n := entries(t, c); n["1s"] != 1 || n["1d"] != 1 || n["1p"] != 0 || n["1m"] != 3 {
		t.Errorf("a base takes %v", n)
	}
	c.End(true)

	c = s.BeginCopy(false)
	if n := entries(t, c); c.Base || n["1s"] != 1 || n["1d"] != 1 || n["1p"] != 1 {
		t.Errorf("a delta takes %v", n)
	}
	c.End(false) // what it takes is left to the next one

	if err := s.Delete(ctx, a.ID); err != nil {
		t.Fatal(err)
	}
	c = s.BeginCopy(false)
	if n := entries(t, c); n["2s"] != 1 || n["2n"] != 1 || n["3p"] != 1 || n["2p"] != 1 || n["1d"] != 0 {
		t.Errorf("a delta after a deletion takes %v", n)
	}
	c.End(true)
	c = s.BeginCopy(false)
	if !c.Empty() || s.Changed() {
		t.Error("without a change there is something to copy")
	}
	c.End(true)
}

func TestUncopied(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	if n := s.Uncopied([]string{"x"}); len(n) > 0 {
		t.Errorf("nobody makes copies, and %v wait", n)
	}
	s.TrackChanges()
	intend := func(o string) {
		t.Helper()
		if err := s.Intend(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(want bool, when string) {
		t.Helper()
		if got := s.Uncopied([]string{"x"})["x"]; got != want {
			t.Errorf("%s: it waits: %t", when, got)
		}
	}
	waits(true, "before the first copy")
	c := s.BeginCopy(false)
	waits(true, "during it")
	c.End(true)
	waits(false, "after it")
	intend("x")
	waits(true, "after a change")
	c = s.BeginCopy(false)
	waits(true, "while it is copied")
	c.End(false)
	waits(true, "after a copy that failed")
	c = s.BeginCopy(false)
	intend("y")
	c.End(true)
	waits(false, "after a copy")
	if !s.Uncopied([]string{"y"})["y"] {
		t.Error("a change during the copy is lost")
	}
}

// Many changes make a copy due; of too many nothing is remembered but that there are
// some.
func TestManyChanges(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	s.TrackChanges()
	s.LimitChanges(2000)
	s.BeginCopy(false).End(true)
	due, n := 0, 0
	for ; due == 0 && n < 1000; n++ {
		if err := s.Intend(ctx, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-s.CopyDue():
			due = n
		default:
		}
	}
	// Each changes the object and its place in the queue.
	if due < 10 || due > 20 {
		t.Errorf("a copy is due after %d changes", due)
	}
	c := s.BeginCopy(false)
	if c.Base {
		t.Error("it is a base")
	}
	for range 5 * due {
		if err := s.Intend(ctx, fmt.Sprint(n)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	c.End(false)
	if c = s.BeginCopy(false); !c.Base {
		t.Error("it is no base after many more changes")
	}
	c.End(true)
}
