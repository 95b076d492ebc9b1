package scrub_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/scrub"
	"firn/internal/tiertest"
	"firn/internal/tiertest/disk"
	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	grace  = time.Hour
	period = 10 * 24 * time.Hour
)

var bg = context.Background()

// rig is a store whose disk and objects are in memory. Its clock moves when the
// scrubber has nothing to do, or waits.
type rig struct {
	t         *testing.T
	options   scrub.Options // what the test has chosen
	disk      *disk.Disk
	mem       *mem.Store
	faults    *fault.Store
	hot       *hot.Store
	cold      *cold.Store
	store     *tier.Store
	compactor *compactor.Compactor
	scrub     *scrub.Scrubber
	registry  *prometheus.Registry
	log       *bytes.Buffer // of the scrubber
	clock     atomic.Int64  // ns
}

func newRig(t *testing.T, o scrub.Options) *rig {
	t.Helper()
	m := mem.New(mem.Options{})
	r := &rig{t: t, options: o, disk: disk.New(), mem: m, faults: fault.New(m), log: new(bytes.Buffer)}
	if r.options.Period == 0 {
		r.options.Period = period
	}
	r.clock.Store(1_700_000_000_000_000_000)
	r.open()
	t.Cleanup(func() {
		r.close()
		if err := tiertest.Check(r.disk.FS(), "hot"); err != nil {
			t.Errorf("the catalog disagrees with itself: %v", err)
		}
	})
	return r
}

func (r *rig) now() time.Time { return time.Unix(0, r.clock.Load()) }

func (r *rig) open() {
	r.t.Helper()
	var err error
	r.hot, err = hot.Open("hot", hot.Options{
		FS: r.disk.FS(), MemTableBytes: 1 << 20, Grace: grace, Now: r.now,
		Fatal: func(m string) { panic(m) },
	})
	r.must(err)
	r.cold, err = cold.Open(r.faults, cold.Options{StoreID: r.hot.ID()})
	r.must(err)
	r.store = tier.New(tier.Options{Hot: r.hot, Cold: r.cold, SpoolDir: r.t.TempDir()})
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 32})
	r.must(err)
	r.registry = prometheus.NewRegistry()
	r.compactor, err = compactor.New(compactor.Options{
		Hot: r.hot, Cold: r.cold, Encoder: e, SweepInterval: time.Nanosecond, Registerer: r.registry,
		Policy: compactor.Policy{Target: 1 << 30, MaxAge: 10_000 * time.Hour},
	})
	r.must(err)
	o := r.options
	o.Hot, o.Compactor, o.Remote, o.Registerer, o.Now = r.hot, r.compactor, r.faults, r.registry, r.now
	o.Wait = func(ctx context.Context, d time.Duration) error { r.clock.Add(int64(max(d, 0))); return ctx.Err() }
	o.Logger = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	r.scrub, err = scrub.New(o)
	r.must(err)
	r.cold.OnSuspect(r.scrub.Suspect)
}

func (r *rig) close() {
	r.cold.Close()
	r.must(r.hot.Close())
}

// crash cuts the power and starts again from what was synced, or from an earlier state.
func (r *rig) crash(left *disk.Disk) {
	r.t.Helper()
	if left == nil {
		left = r.disk.Crash()
	}
	r.close()
	r.disk = left
	r.open()
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// work lets the scrubber work until it has nothing to do for a while.
func (r *rig) work() {
	r.t.Helper()
	for {
		idle, err := r.scrub.Step(bg)
		r.must(err)
		if idle > 0 {
			return
		}
	}
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	end := r.now().Add(d)
	for r.now().Before(end) {
		idle, err := r.scrub.Step(bg)
		r.must(err)
		if idle > 0 {
			r.clock.Add(int64(min(idle, end.Sub(r.now()))))
		}
	}
	r.work()
}

func named(id string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: id} }

// content is what streams hold: hard to compress, in 8 frames.
func content(id string) string {
	var b strings.Builder
	for i := range 250 {
		b.WriteByte('!' + byte((i*i*7+i/3+int(id[0])*31)%90))
	}
	return b.String()
}

// create makes a stream of its content.
func (r *rig) create(id string) stream.ID {
	r.t.Helper()
	i, _, err := r.store.Create(bg, tier.CreateRequest{Name: named(id), Body: []byte(content(id))})
	r.must(err)
	return i.ID
}

// sealed makes a stream whose bytes are in an object of its own, and returns its key.
func (r *rig) sealed(id string) string {
	r.t.Helper()
	in := r.create(id)
	r.must(r.compactor.SealStream(bg, in))
	return r.object(id)
}

// packed makes streams that share an object.
func (r *rig) packed(ids ...string) string {
	r.t.Helper()
	var ins []stream.ID
	for _, id := range ids {
		ins = append(ins, r.create(id))
	}
	s, err := r.compactor.Build(ins...)
	r.must(err)
	r.must(s.Intend(bg))
	r.must(s.Upload(bg))
	r.must(s.Commit(bg))
	return r.object(ids[0])
}

// shot makes a stream with a snapshot.
func (r *rig) shot(id string) string {
	r.t.Helper()
	r.create(id)
	r.must(r.store.PublishSnapshot(bg, tier.PublishRequest{
		Name: named(id), Offset: r.record(id).Offset(100), Size: -1, Body: strings.NewReader("all of it"),
	}))
	return r.record(id).Snapshot.Object
}

func (r *rig) record(id string) *hot.Record {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(id))
	r.must(err)
	return rec
}

// object is the key of a stream's first segment.
func (r *rig) object(id string) string {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(id))
	r.must(err)
	ref, err := v.Segment(rec.ID, 0)
	r.must(err)
	return ref.Object
}

func (r *rig) evict(ids ...string) {
	r.t.Helper()
	for _, id := range ids {
		r.must(r.compactor.EvictStream(bg, r.record(id).ID))
	}
}

// holds fails the test unless a stream reads as it should.
func (r *rig) holds(id string) {
	r.t.Helper()
	p, err := r.store.Read(bg, named(id), stream.Start{})
	defer p.Release()
	if err != nil || string(p.Data) != content(id) {
		r.t.Errorf("%s reads %q, %v", id, p.Data, err)
	}
}

func (r *rig) bytes(key string) []byte {
	r.t.Helper()
	b, _, err := blob.ReadAll(bg, r.mem, key, 0, -1)
	r.must(err)
	return b
}

// put has the store hold other bytes under a key; nil is none.
func (r *rig) put(key string, b []byte) {
	r.t.Helper()
	if b == nil {
		r.must(r.mem.Delete(bg, key))
		return
	}
	_, err := r.mem.Put(bg, key, bytes.NewReader(b), blob.PutOptions{})
	r.must(err)
}

func (r *rig) metric(name string, labels ...string) (sum float64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	r.must(err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			matches := true
			for i := 0; i < len(labels); i += 2 {
				matches = matches && slices.ContainsFunc(m.GetLabel(), func(l labelPair) bool {
					return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				})
			}
			if matches {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// verify looks at the store from the outside, and returns the keys of what is wrong.
func (r *rig) verify() (keys []string) {
	r.t.Helper()
	report, err := verify.Run(bg, verify.RunOptions{InUse: true, Remote: r.mem, State: func() (verify.Reader, func()) {
		v := r.hot.View()
		return v.Reader(), v.Close
	}})
	r.must(err)
	for _, p := range report.Problems {
		if !slices.Contains(keys, p.Object) {
			keys = append(keys, p.Object)
		}
	}
	return keys
}

// damaged fails the test unless scrubber, catalog and an outside look agree on what is
// damaged.
func (r *rig) damaged(want ...string) {
	r.t.Helper()
	slices.Sort(want)
	v := r.hot.View()
	list, err := v.Damaged("", 100)
	v.Close()
	r.must(err)
	var keys []string
	for _, d := range list {
		keys = append(keys, d.Object)
	}
	if !slices.Equal(keys, want) {
		r.t.Errorf("the catalog has %q as damaged, want %q", keys, want)
	}
	if got := r.verify(); !slices.Equal(got, want) {
		r.t.Errorf("verify finds %q, want %q", got, want)
	}
	if n := r.scrub.Status().Objects(); n != len(want) {
		r.t.Errorf("%d objects are damaged, want %d", n, len(want))
	}
	if n := r.metric("firn_scrub_damaged_objects"); n != float64(len(want)) {
		r.t.Errorf("the metric says that %v are damaged, want %d", n, len(want))
	}
}

// logged counts lines of the log.
func (r *rig) logged(n int, parts ...string) {
	r.t.Helper()
	got := 0
	for line := range strings.Lines(r.log.String()) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			got++
		}
	}
	if got != n {
		r.t.Errorf("%d lines with %q, want %d, in\n%s", got, parts, n, r.log)
	}
}

func letter(i int) string { return fmt.Sprintf("%c", 'a'+i) }
