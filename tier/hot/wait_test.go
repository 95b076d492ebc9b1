package hot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
	"firn/tier/hot"
)

func appendTo(t testing.TB, s *hot.Store, id stream.ID, payload string) hot.AppendResult {
	t.Helper()
	r, err := s.Append(context.Background(), &hot.Append{ID: id, ContentType: "text/plain", Payload: []byte(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Readers that wait at the tail and read what they are woken for see every byte.
// One that missed a wake would wait for ever at the end.
func TestWaitMissesNoWake(t *testing.T) {
	const readers, appends = 8, 300
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			var got []byte
			for {
				if err := s.Wait(ctx, rec.ID, uint64(len(got))); err != nil {
					t.Error(err)
					return
				}
				v := s.View()
				r, err := v.Incarnation(rec.ID)
				if err == nil {
					got, err = v.Data(got, rec.ID, uint64(len(got)), r.Tail)
				}
				v.Close()
				if err != nil {
					t.Error(err)
					return
				}
				if r.Closed && uint64(len(got)) == r.Tail {
					break
				}
			}
			for i := range appends {
				if want := fmt.Sprintf("%04d", i); !bytes.Equal(got[4*i:4*i+4], []byte(want)) {
					t.Errorf("read %q at %d, want %q", got[4*i:4*i+4], 4*i, want)
					return
				}
			}
		})
	}
	for i := range appends {
		appendTo(t, s, rec.ID, fmt.Sprintf("%04d", i))
	}
	if _, err := s.Append(ctx, &hot.Append{ID: rec.ID, Close: true}); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// The writer appends once for each time that the reader has caught up, so that no
// later append makes good for a wake that was missed. The reader comes to wait a
// little earlier or later each time, before, during and after the commit.
func TestWaitMissesNoWakeInLockstep(t *testing.T) {
	const rounds = 600
	s := open(t, vfs.NewMem())
	defer s.Close()
	var wg sync.WaitGroup
	for pair := range 2 {
		rec := create(t, s, fmt.Sprint(pair))
		var spin atomic.Uint64
		next := make(chan struct{}, 1)
		wg.Go(func() {
			for range next {
				appendTo(t, s, rec.ID, "x")
			}
		})
		wg.Go(func() {
			defer close(next)
			for i := range uint64(rounds) {
				next <- struct{}{}
				for range i * 7919 % 20_000 {
					spin.Add(1)
				}
				if err := s.Wait(context.Background(), rec.ID, i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Whatever happens to a stream ends the waiting at its tail, and nothing that
// happens to another does.
func TestWaitEndsWith(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		do   func(*hot.Store, *hot.Record) error
		want error
	}{
		"append": {func(s *hot.Store, r *hot.Record) error {
			_, err := s.Append(ctx, &hot.Append{ID: r.ID, ContentType: "text/plain", Payload: []byte("x")})
			return err
		}, nil},
		"close": {func(s *hot.Store, r *hot.Record) error {
			_, err := s.Append(ctx, &hot.Append{ID: r.ID, Close: true})
			return err
		}, nil},
		"deletion": {func(s *hot.Store, r *hot.Record) error { return s.Delete(ctx, r.ID) }, nil},
		"deletion that forks survive": {func(s *hot.Store, r *hot.Record) error {
			_, err := s.Create(ctx, hot.Create{
				Name: stream.Name{Bucket: "default", ID: "fork"}, ContentType: "text/plain", Mode: stream.Bytes,
				Fork: &hot.CreateFork{Source: r.ID, From: r.Name},
			})
			return errors.Join(err, s.Delete(ctx, r.ID))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, vfs.NewMem())
			defer s.Close()
			rec, other := create(t, s, "a"), create(t, s, "b")
			woken := make(chan error, 1)
			go func() { woken <- s.Wait(ctx, rec.ID, 0) }()
			appendTo(t, s, other.ID, "x")
			select {
			case err := <-woken:
				t.Fatalf("woken by another stream: %v", err)
			default:
			}
			if err := c.do(s, rec); err != nil {
				t.Fatal(err)
			}
			if err := <-woken; !errors.Is(err, c.want) {
				t.Fatalf("woken with %v, want %v", err, c.want)
			}
		})
	}
}

func TestWaitEndsWithItsContextAndTheStore(t *testing.T) {
	s := open(t, vfs.NewMem())
	rec := create(t, s, "a")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Wait(ctx, rec.ID, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	ready, woken := make(chan struct{}), make(chan error, 1)
	go func() {
		close(ready)
		woken <- s.Wait(context.Background(), rec.ID, 0)
	}()
	<-ready
	if err := s.Wait(ctx, 12345, 0); err != nil {
		t.Fatalf("a stream that is not there is news: %v", err)
	}
	appendTo(t, s, rec.ID, "x")
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
