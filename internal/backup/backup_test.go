package backup_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

var bg = context.Background()

const (
	dir   = "data/hot"
	grace = time.Minute
)

// rig is a store over a disk and a bucket in memory, with its copies.
type rig struct {
	t     *testing.T
	disk  *disk.Disk
	mem   *mem.Store
	blobs *fault.Store
	clock *atomic.Int64 // ms

	hot       *hot.Store
	cold      *cold.Store
	store     *tier.Store
	compactor *compactor.Compactor
	runner    *backup.Runner
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, disk: disk.New(), clock: new(atomic.Int64)}
	r.mem = mem.New(mem.Options{Now: r.now})
	r.blobs = fault.New(r.mem)
	r.clock.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) now() time.Time { return time.UnixMilli(r.clock.Load()) }

func (r *rig) wait(d time.Duration) { r.clock.Add(d.Milliseconds()) }

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) hotOptions() hot.Options {
	return hot.Options{
		FS: r.disk.FS(), MemTableBytes: 1 << 20, CacheBytes: 1 << 20, Now: r.now, Grace: grace, SealTarget: 1000,
		Fatal: func(m string) { panic(m) },
	}
}

// start opens everything.
func (r *rig) start() {
	r.t.Helper()
	var err error
	r.hot, err = hot.Open(dir, r.hotOptions())
	r.must(err)
	r.cold, err = cold.Open(r.blobs, cold.Options{StoreID: r.hot.ID(), Now: r.now})
	r.must(err)
	r.must(r.cold.Claim(bg, cold.ClaimOptions{Fence: r.hot.Fence(), Remember: r.hot.SetFence}))
	r.store = tier.New(tier.Options{Hot: r.hot, Cold: r.cold, SpoolDir: r.t.TempDir()})
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 700, Level: 1})
	r.must(err)
	r.compactor, err = compactor.New(compactor.Options{
		Hot: r.hot, Cold: r.cold, Encoder: e, SweepInterval: time.Nanosecond,
		Policy: compactor.Policy{Target: 1000, Budget: 1 << 30, MaxAge: time.Hour},
	})
	r.must(err)
	r.runner, err = backup.New(backup.Options{Hot: r.hot, Cold: r.cold, Blobs: r.blobs, Grace: grace})
	r.must(err)
}

func (r *rig) stop() {
	if r.hot == nil {
		return
	}
	r.cold.Close()
	if err := r.hot.Close(); err != nil {
		r.t.Error(err)
	}
	r.hot = nil
}

// lose ends the store and takes its disk away.
func (r *rig) lose() {
	r.t.Helper()
	r.stop()
	r.disk = disk.New()
}

// rebuild makes the store again from the bucket, checks it and starts it.
func (r *rig) rebuild(o backup.RebuildOptions) (*backup.Report, map[stream.Name]hot.Rebuilt) {
	r.t.Helper()
	rep, streams, err := r.tryRebuild(o)
	r.must(err)
	r.check()
	r.start()
	return rep, streams
}

func (r *rig) tryRebuild(o backup.RebuildOptions) (*backup.Report, map[stream.Name]hot.Rebuilt, error) {
	streams := make(map[stream.Name]hot.Rebuilt)
	o.Blobs, o.Dir, o.Hot, o.TakeOver, o.Now = r.blobs, dir, r.hotOptions(), true, r.now
	o.Stream = func(s hot.Rebuilt) error {
		streams[s.Name] = s
		return nil
	}
	rep, err := backup.Rebuild(bg, o)
	return rep, streams, err
}

// check holds a closed store to what it promises of itself.
func (r *rig) check() {
	r.t.Helper()
	problems, err := r.disk.Problems(dir)
	r.must(err)
	for _, p := range problems {
		r.t.Error(p)
	}
	if r.t.Failed() {
		r.t.FailNow()
	}
}

func named(id string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: id} }

func (r *rig) create(id, content string) tier.Info {
	r.t.Helper()
	i, _, err := r.store.Create(bg, tier.CreateRequest{Name: named(id), ContentType: "text/plain", Body: []byte(content)})
	r.must(err)
	return i
}

func (r *rig) append(id, content string) {
	r.t.Helper()
	_, err := r.store.Append(bg, tier.AppendRequest{Name: named(id), ContentType: "text/plain", Body: []byte(content)})
	r.must(err)
}

func (r *rig) seal(id string) {
	r.t.Helper()
	i, err := r.store.Head(bg, named(id))
	r.must(err)
	r.must(r.compactor.SealStream(bg, i.ID))
}

func (r *rig) copy() {
	r.t.Helper()
	r.wait(time.Second)
	_, err := r.runner.Copy(bg)
	r.must(err)
}

// content reads a whole stream from its earliest position on.
func (r *rig) content(n stream.Name) (string, error) {
	i, err := r.store.Head(bg, n)
	if err != nil {
		return "", err
	}
	var all []byte
	for at := i.Earliest; ; {
		p, err := r.store.Read(bg, n, stream.At(at))
		if err != nil {
			return "", err
		}
		all = append(all, p.Data...)
		at = p.Next
		done := p.UpToDate
		p.Release()
		if done {
			return string(all), nil
		}
	}
}

func (r *rig) holds(id, want string) {
	r.t.Helper()
	if got, err := r.content(named(id)); err != nil || got != want {
		r.t.Errorf("%s holds %q, %v; want %q", id, got, err, want)
	}
}

// keys lists what the bucket has.
func (r *rig) keys(prefix string) []string {
	r.t.Helper()
	var keys []string
	r.must(r.mem.List(bg, prefix, "", func(i blob.Info) error {
		keys = append(keys, i.Key)
		return nil
	}))
	return keys
}
