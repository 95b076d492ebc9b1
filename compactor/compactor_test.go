package compactor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/tiertest"
	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	grace       = time.Hour
	keepHistory = 24 * time.Hour
)

var bg = context.Background()

// rig is a store with a compactor whose steps the test takes. Its disk and its
// objects are in memory, its clock stands still.
type rig struct {
	*compactor.Compactor
	t      testing.TB
	setup  setup
	disk   *disk.Disk
	hot    *hot.Store
	blobs  blob.Store
	faults *fault.Store
	cold   *cold.Store
	store  *tier.Store
	clock  atomic.Int64 // ms
	// registry has the metrics of the compactor.
	registry *prometheus.Registry
}

// setup is what tests choose.
type setup struct {
	policy      compactor.Policy
	sealTarget  uint64
	keepHistory time.Duration
	unique      func() string
	concurrency int
	// between stands between the cold tier and the objects.
	between func(blob.Store) blob.Store
}

// newRig opens an empty store. By default a stream is due when it has 100 bytes, and
// never for its age.
func newRig(t testing.TB, s setup) *rig {
	t.Helper()
	if s.policy.Target == 0 {
		s.policy.Target = 100
	}
	if s.policy.MaxAge == 0 {
		s.policy.MaxAge = 10_000 * time.Hour
	}
	if s.sealTarget == 0 {
		s.sealTarget = s.policy.Target
	}
	if s.keepHistory == 0 {
		s.keepHistory = keepHistory
	}
	m := mem.New(mem.Options{})
	r := &rig{t: t, setup: s, disk: disk.New(), blobs: m, faults: fault.New(m)}
	r.clock.Store(1_700_000_000_000)
	r.open()
	t.Cleanup(func() {
		r.close()
		if err := tiertest.Check(r.disk.FS(), "hot"); err != nil {
			t.Errorf("the catalog disagrees with itself: %v", err)
		}
	})
	return r
}

func (r *rig) open() {
	r.t.Helper()
	log := slog.New(slog.NewTextHandler(writer{r.t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	r.hot, err = hot.Open("hot", hot.Options{
		FS: r.disk.FS(), MemTableBytes: 1 << 20, Logger: log, SealTarget: r.setup.sealTarget,
		Grace: grace, KeepHistory: r.setup.keepHistory,
		Now:   func() time.Time { return time.UnixMilli(r.clock.Load()) },
		Fatal: func(m string) { panic(m) },
	})
	r.must(err)
	blobs := blob.Store(r.faults)
	if r.setup.between != nil {
		blobs = r.setup.between(blobs)
	}
	r.cold, err = cold.Open(blobs, cold.Options{StoreID: r.hot.ID(), Logger: log, Unique: r.setup.unique})
	r.must(err)
	r.store = tier.New(tier.Options{Hot: r.hot, Cold: r.cold, Logger: log, SpoolDir: r.t.TempDir()})
	r.registry = prometheus.NewRegistry()
	r.Compactor = r.compactor(r.registry)
}

// another is one more compactor on the same store.
func (r *rig) another() *compactor.Compactor { return r.compactor(nil) }

func (r *rig) compactor(registry prometheus.Registerer) *compactor.Compactor {
	r.t.Helper()
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 32})
	r.must(err)
	c, err := compactor.New(compactor.Options{
		Hot: r.hot, Cold: r.cold, Encoder: e, Policy: r.setup.policy, Concurrency: r.setup.concurrency,
		Interval: time.Millisecond, SweepInterval: time.Nanosecond, Registerer: registry,
		Logger: slog.New(slog.NewTextHandler(writer{r.t}, nil)),
	})
	r.must(err)
	return c
}

func (r *rig) close() {
	r.cold.Close()
	if err := r.hot.Close(); err != nil {
		r.t.Error(err)
	}
}

// crash cuts the power and starts again from what was synced.
func (r *rig) crash() {
	r.t.Helper()
	left := r.disk.Crash()
	r.close()
	r.disk = left
	r.open()
}

// writer sends log lines to the test.
type writer struct{ t testing.TB }

func (w writer) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// metric adds up the values of a counter.
func (r *rig) metric(name string) (sum float64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	r.must(err)
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) is(err, want error, what string, args ...any) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Errorf("%s: %v, want %v", fmt.Sprintf(what, args...), err, want)
	}
}

func named(id string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: id} }

// create makes a stream of bytes and returns its incarnation.
func (r *rig) create(id, body string) stream.ID {
	r.t.Helper()
	i, _, err := r.store.Create(bg, tier.CreateRequest{Name: named(id), Body: []byte(body)})
	r.must(err)
	return i.ID
}

func (r *rig) append(id, body string) {
	r.t.Helper()
	_, err := r.store.Append(bg, tier.AppendRequest{Name: named(id), ContentType: stream.DefaultContentType, Body: []byte(body)})
	r.must(err)
}

func (r *rig) publish(id string, at uint64) {
	r.t.Helper()
	i, err := r.store.Head(bg, named(id))
	r.must(err)
	r.must(r.store.PublishSnapshot(bg, tier.PublishRequest{
		Name: named(id), Offset: stream.Offset{Life: i.Tail.Life, Position: at}, Size: -1, Body: strings.NewReader("snap"),
	}))
}

func (r *rig) record(id string) *hot.Record {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(id))
	r.must(err)
	return rec
}

// marks fails the test unless a stream's cut, sealed and tail are these.
func (r *rig) marks(id string, cut, sealed, tail uint64) {
	r.t.Helper()
	if m := r.record(id).Marks; m.Cut != cut || m.Sealed != sealed || m.Tail != tail {
		r.t.Errorf("%s has cut %d, sealed %d, tail %d; want %d, %d, %d", id, m.Cut, m.Sealed, m.Tail, cut, sealed, tail)
	}
}

// holds fails the test unless a stream reads as want from a position on.
func (r *rig) holds(id, want string, from uint64) {
	r.t.Helper()
	o := r.record(id).Offset(from)
	p, err := r.store.Read(bg, named(id), stream.At(o))
	if err != nil || string(p.Data) != want[from:] || !p.UpToDate {
		r.t.Errorf("%s from %d: %q, %v; want %q", id, from, p.Data, err, want[from:])
	}
	p.Release()
}

// pass takes every step until there is nothing more to do.
func (r *rig) pass() {
	r.t.Helper()
	for more := true; more; {
		var err error
		more, err = r.Pass(bg)
		r.must(err)
	}
}

// wait lets time go by, then takes every step.
func (r *rig) wait(d time.Duration) {
	r.t.Helper()
	r.clock.Add(d.Milliseconds())
	r.pass()
}

// objects lists the keys of the objects of a kind: its ending.
func (r *rig) objects(kind string) (keys []string) {
	r.t.Helper()
	r.must(r.blobs.List(bg, "", "", func(i blob.Info) error {
		if strings.HasSuffix(i.Key, kind) {
			keys = append(keys, i.Key)
		}
		return nil
	}))
	return keys
}

// count fails the test unless there are n segments in the object store.
func (r *rig) count(n int, what string) {
	r.t.Helper()
	if keys := r.objects(".zst"); len(keys) != n {
		r.t.Errorf("%s: %d segments in the store, want %d: %q", what, len(keys), n, keys)
	}
}

// letters are n different bytes.
func letters(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(byte('!' + i%90))
	}
	return b.String()
}

// build is Build that must have something to seal.
func (r *rig) build(c *compactor.Compactor, id stream.ID) *compactor.Sealing {
	r.t.Helper()
	s, err := c.Build(id)
	r.must(err)
	if s == nil {
		r.t.Fatal("there is nothing to seal")
	}
	return s
}
