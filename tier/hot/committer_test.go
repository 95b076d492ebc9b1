package hot_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/prometheus/client_golang/prometheus"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// queued reads how many commands wait for the committer.
func queued(t *testing.T, r *prometheus.Registry) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "firn_hot_queue_commands" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric of the queue")
	return 0
}

// What is queued during one sync shares the next one, in the order of arrival.
func TestAppendsShareSyncs(t *testing.T) {
	const appends = 500
	ctx := context.Background()
	var syncs atomic.Int64
	var hold atomic.Pointer[chan struct{}]
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isLog(op) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			syncs.Add(1)
			if c := hold.Load(); c != nil {
				<-*c
			}
		}
		return nil
	}))
	registry := prometheus.NewRegistry()
	s := openWith(t, hot.Options{FS: disk, Registerer: registry})
	defer s.Close()
	rec, first := create(t, s, "a"), create(t, s, "first")

	// One append is held at its sync until all others are queued behind it.
	release := make(chan struct{})
	hold.Store(&release)
	syncs.Store(0)
	var wg sync.WaitGroup
	wg.Go(func() { appendTo(t, s, first.ID, "first") })
	for syncs.Load() == 0 {
		runtime.Gosched()
	}
	tails := make([]uint64, appends)
	for i := range appends {
		wg.Go(func() {
			r, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
			if err != nil {
				t.Error(err)
			}
			tails[i] = r.Tail.Position
		})
	}
	for queued(t, registry) < appends {
		runtime.Gosched()
	}
	hold.Store(nil)
	close(release)
	wg.Wait()
	if n := syncs.Load(); n != 2 {
		t.Errorf("%d appends behind one took %d syncs, want 1 for it and 1 for them", appends, n)
	}
	seen := make(map[uint64]bool)
	for _, tail := range tails {
		seen[tail] = true
	}
	if len(seen) != appends {
		t.Errorf("%d appends were told %d different tails", appends, len(seen))
	}
}

// A command that is refused leaves no trace in the batch that it is part of.
func TestRefusedCommandsShareBatches(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	defer s.Close()
	rec := create(t, s, "a")
	var wg sync.WaitGroup
	var taken atomic.Uint64
	for i := range 200 {
		wg.Go(func() {
			var err error
			switch i % 4 {
			case 0:
				_, err = s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("yes")})
				taken.Add(3)
			case 1:
				_, err = s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "image/png", Payload: []byte("no")})
			case 2:
				_, err = s.Append(ctx, &hot.Append{ID: 7, ContentType: "text/plain", Payload: []byte("no")})
			case 3:
				_, err = s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("no"), Producer: &stream.Producer{ID: fmt.Sprint(i), Seq: 1}})
			}
			if (err == nil) != (i%4 == 0) {
				t.Errorf("append %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if rec = current(t, s, rec.ID); rec.Tail != taken.Load() || rec.Producers != 0 {
		t.Fatalf("record is %+v, want a tail of %d", rec, taken.Load())
	}
}

func TestCommandsAfterClose(t *testing.T) {
	ctx := context.Background()
	s := open(t, vfs.NewMem())
	rec := create(t, s, "a")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
	if !errors.Is(err, stream.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
}

// Commands that race with Close are done, or refused; never is one left waiting.
func TestCloseAnswersEverybody(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s := open(t, mem)
	rec := create(t, s, "a")
	var wg sync.WaitGroup
	var taken atomic.Uint64
	start, closed := make(chan struct{}), make(chan error, 1)
	for range 50 {
		wg.Go(func() {
			<-start
			for {
				_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
				if err != nil {
					if !errors.Is(err, stream.ErrUnavailable) {
						t.Errorf("append: %v", err)
					}
					return
				}
				if taken.Add(1) == 100 {
					go func() { closed <- s.Close() }()
				}
			}
		})
	}
	close(start)
	wg.Wait()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	s = open(t, mem)
	defer s.Close()
	// A command that was refused as too late was not done.
	if tail := current(t, s, rec.ID).Tail; tail != taken.Load() {
		t.Fatalf("%d appends were acknowledged, %d are there", taken.Load(), tail)
	}
}

// A repeated creation tells the stream as it was in its turn, not as later commands of
// the same batch have left it.
func TestRepeatedCreationTellsItsOwnMoment(t *testing.T) {
	ctx := context.Background()
	var hold, held atomic.Bool
	release := make(chan struct{})
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if isLog(op) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && hold.Load() {
			held.Store(true)
			<-release
		}
		return nil
	}))
	registry := prometheus.NewRegistry()
	s := openWith(t, hot.Options{FS: disk, Registerer: registry})
	defer s.Close()
	rec, first := create(t, s, "a"), create(t, s, "first")
	hold.Store(true)
	var all sync.WaitGroup
	all.Go(func() { appendTo(t, s, first.ID, "first") })
	for !held.Load() {
		runtime.Gosched()
	}
	var again hot.CreateResult
	for i, command := range []func() error{
		func() error {
			_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("x")})
			return err
		},
		func() (err error) {
			again, err = s.Create(ctx, hot.Create{Name: rec.Name, ContentType: rec.ContentType, Mode: rec.Mode})
			return err
		},
		func() error {
			_, err := s.Append(ctx, &hot.Append{ID: rec.ID, ContentType: "text/plain", Payload: []byte("yz"), Close: true})
			return err
		},
	} {
		all.Go(func() {
			if err := command(); err != nil {
				t.Error(err)
			}
		})
		for queued(t, registry) < float64(i+1) {
			runtime.Gosched()
		}
	}
	hold.Store(false)
	close(release)
	all.Wait()
	if again.Created || again.Record.Tail != 1 || again.Record.Closed {
		t.Errorf("created %t, tail %d, closed %t; want the stream after its first byte", again.Created, again.Record.Tail, again.Record.Closed)
	}
}
