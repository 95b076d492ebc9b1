package api

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestFanoutEncodesOnce(t *testing.T) {
	f := newFanout()
	var encoded atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			got := f.event(eventKey{id: 1, next: 5}, func() []byte {
				encoded.Add(1)
				return []byte("event")
			})
			if string(got) != "event" {
				t.Errorf("got %q", got)
			}
		})
	}
	wg.Wait()
	if encoded.Load() != 1 {
		t.Errorf("encoded %d times", encoded.Load())
	}
}

func TestFanoutForgetsTheOldest(t *testing.T) {
	f := newFanout()
	encode := func(b string) func() []byte { return func() []byte { return []byte(b) } }
	for i := range uint64(sharedEvents) {
		f.event(eventKey{next: i}, encode("old"))
	}
	if got := f.event(eventKey{next: 0}, encode("new")); string(got) != "old" {
		t.Errorf("full, first key: got %q", got)
	}
	f.event(eventKey{next: sharedEvents}, encode("old"))
	if got := f.event(eventKey{next: 1}, encode("new")); string(got) != "old" {
		t.Errorf("one over, second key: got %q", got)
	}
	if got := f.event(eventKey{next: 0}, encode("new")); string(got) != "new" {
		t.Errorf("one over, first key: got %q", got)
	}
	if len(f.events) != sharedEvents {
		t.Errorf("%d events kept", len(f.events))
	}
}

func TestFanoutTellsEventsApart(t *testing.T) {
	f := newFanout()
	keys := []eventKey{
		{}, {id: 1}, {from: 1}, {next: 1}, {cursor: 1}, {upToDate: true}, {closed: true},
	}
	for i, k := range keys {
		want := string(rune('a' + i))
		if got := f.event(k, func() []byte { return []byte(want) }); string(got) != want {
			t.Errorf("%+v: got %q, want %q", k, got, want)
		}
	}
}
