// Package fault lets a store fail by script. It is for tests.
//
// A script is a list of faults; each waits for the calls it is meant for and then
// fires a given number of times. Every fault that shows in the outcome of a write
// comes in both kinds: before the write happened, and after it, with the reply
// lost. The wrapper counts all calls and is strict: a fault that did not fire as
// often as it should is a mistake in the test, see [Store.Unfired].
package fault

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"firn/internal/blob"
)

// Op is an operation of a store.
type Op string

// The operations.
const (
	Put    Op = "put"
	Get    Op = "get"
	Delete Op = "delete"
	List   Op = "list"
)

// Kind is what a fault does.
type Kind uint8

const (
	// Before fails the call without making it.
	Before Kind = iota + 1
	// After makes the call and loses its reply: the error comes back all the
	// same. The body of a Get is closed.
	After
	// Stall holds the call before it is made, until Gate is closed or the
	// context ends; without a Gate, until the context ends.
	Stall
	// Cut breaks the body of a Get off after At bytes, with Err.
	Cut
	// Short ends the body of a Get cleanly after At bytes, which no correct
	// store does.
	Short
	// Flip inverts the lowest bit of byte At of the body of a Get.
	Flip
	// Hide makes the key of a Get seem absent, or leaves keys out of a List.
	Hide
)

// Always is for Fault.Times: fire at every call.
const Always = -1

// Fault is one line of a script.
type Fault struct {
	Op   Op     // "" for every operation
	Key  string // substring of a key (of List: of the prefix; Hide: of a key listed); "" for all
	Skip int    // matching calls that pass before it fires
	// Times is how often it fires; 0 means once, [Always] without end.
	Times int
	Kind  Kind
	Err   error         // of Before, After and Cut; default blob.ErrUnavailable
	At    int64         // of Cut, Short and Flip: a position in the body
	Gate  chan struct{} // of Stall
}

// Store wraps a store.
type Store struct {
	inner blob.Store

	mu     sync.Mutex
	script []*line
	counts map[Op]int
}

type line struct {
	Fault
	seen, fired int
}

var _ blob.Store = (*Store)(nil)

// New wraps a store; the script is empty.
func New(inner blob.Store) *Store { return &Store{inner: inner, counts: map[Op]int{}} }

// Script adds faults. Of several that could fire for a call, the first does. It
// panics on a fault that makes no sense.
func (s *Store) Script(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		f.check()
		if f.Times == 0 {
			f.Times = 1
		}
		if f.Err == nil {
			f.Err = fmt.Errorf("%w: scripted fault", blob.ErrUnavailable)
		}
		s.script = append(s.script, &line{Fault: f})
	}
}

func (f Fault) check() {
	switch f.Kind {
	case Before, After, Stall:
		return
	case Cut, Short, Flip:
		if f.Op == Get && f.At >= 0 {
			return
		}
	case Hide:
		if f.Op == Get || f.Op == List {
			return
		}
	}
	panic(fmt.Sprintf("fault: makes no sense: %+v", f))
}

// Clear drops the script. Calls that stall go on stalling.
func (s *Store) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = nil
}

// Unfired returns the faults of the script that have fired less often than they
// should; one with [Always] should at least once.
func (s *Store) Unfired() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []Fault
	for _, l := range s.script {
		if l.fired < l.Times || l.fired == 0 {
			left = append(left, l.Fault)
		}
	}
	return left
}

// Calls returns how many calls of an operation came in; "" is all.
func (s *Store) Calls(op Op) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if op != "" {
		return s.counts[op]
	}
	n := 0
	for _, c := range s.counts {
		n += c
	}
	return n
}

// take counts a call and returns the fault that fires for it, or nil.
func (s *Store) take(op Op, keys ...string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[op]++
	for _, l := range s.script {
		// Hidden keys of a listing are matched key by key, in hidden.
		if l.Op != "" && l.Op != op || l.Op == List && l.Kind == Hide {
			continue
		}
		matches := func(k string) bool { return strings.Contains(k, l.Key) }
		if slices.ContainsFunc(keys, matches) && l.fire() {
			return &l.Fault
		}
	}
	return nil
}

func (l *line) fire() bool {
	if l.seen++; l.seen <= l.Skip || l.Times != Always && l.fired >= l.Times {
		return false
	}
	l.fired++
	return true
}

// before acts out a fault that comes before the call.
func (f *Fault) before(ctx context.Context) error {
	switch {
	case f == nil:
		return nil
	case f.Kind == Before:
		return f.Err
	case f.Kind == Stall:
		select {
		case <-f.Gate: // nil blocks for ever
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *Fault) after(err error) error {
	if f != nil && f.Kind == After {
		return f.Err
	}
	return err
}

// Put implements [blob.Store].
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	f := s.take(Put, key)
	if err := f.before(ctx); err != nil {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	info, err := s.inner.Put(ctx, key, body, opts)
	if err := f.after(err); err != nil {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return info, nil
}

// Get implements [blob.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	f := s.take(Get, key)
	if f != nil && f.Kind == Hide {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, blob.ErrNotFound)
	}
	if err := f.before(ctx); err != nil {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	r, info, err := s.inner.Get(ctx, key, off, n)
	if ferr := f.after(nil); ferr != nil {
		if err == nil {
			r.Close()
		}
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, ferr)
	}
	if err == nil && f != nil {
		r = f.body(r)
	}
	return r, info, err
}

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	f := s.take(Delete, keys...)
	if err := f.before(ctx); err != nil {
		return blob.DeleteFailed(keys, err)
	}
	err := s.inner.Delete(ctx, keys...)
	if ferr := f.after(nil); ferr != nil {
		return blob.DeleteFailed(keys, ferr)
	}
	return err
}

// List implements [blob.Store]. After fails it once all keys were seen.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	f := s.take(List, prefix)
	if err := f.before(ctx); err != nil {
		return fmt.Errorf("list %s: %w", prefix, err)
	}
	err := s.inner.List(ctx, prefix, after, func(info blob.Info) error {
		if s.hidden(info.Key) {
			return nil
		}
		return fn(info)
	})
	return f.after(err)
}

func (s *Store) hidden(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.script {
		if l.Op == List && l.Kind == Hide && strings.Contains(key, l.Key) && l.fire() {
			return true
		}
	}
	return false
}
