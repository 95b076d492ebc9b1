package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"firn/compactor"
	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

const (
	grace       = time.Hour
	keepHistory = 6 * time.Hour
	producers   = 3
	dir         = "hot"
)

// epoch is when every run begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// world is all that a history is played on. The clock, the disk and the bucket outlive
// the processes.
type world struct {
	World
	opts    Options
	disk    *disk.Disk
	bucket  *bucket
	encoder *segment.Encoder
	clock   atomic.Int64 // ms

	*process
	model *model

	// older is a copy of the disk that was kept, and the fence that it knows.
	older      *disk.Disk
	olderFence uint64
	fault      atomic.Pointer[string] // what made the hot tier give up

	// copies of the catalog that were made since the disk was last lost, and the most
	// that each incarnation has ever been.
	copies []copied
	known  map[stream.ID]*life
	// strays are objects that nobody knows since the disk was lost.
	strays map[string]bool

	mu     sync.Mutex // guards what follows
	random *rand.Rand // of incarnations and keys
}

// process is one life of the server.
type process struct {
	hot        *hot.Store
	cold       *cold.Store
	store      *tier.Store
	blobs      *trouble
	compactors [2]*compactor.Compactor
	sweeper    *compactor.Compactor // trims and sweeps alone
	runner     *backup.Runner       // nil without copies of the catalog
	sealings   [4]*sealing
	readers    [4]*reader
}

func newWorld(w World, o Options) (*world, error) {
	w = w.withDefaults()
	e, err := o.Encoders.get(w.Frame)
	if err != nil {
		return nil, err
	}
	x := &world{
		World: w, opts: o, disk: disk.New(), encoder: e,
		random: rand.New(rand.NewPCG(w.Seed, 2)),
		known:  make(map[stream.ID]*life),
		strays: make(map[string]bool),
		model:  newModel(uint64(epoch.UnixMilli()), w.Page),
	}
	x.clock.Store(epoch.UnixMilli())
	x.bucket = newBucket(x.now)
	return x, nil
}

// tick advances the clock. Puts are late by less than a minute: a server gives a
// request up long before it gives up what was intended.
func (w *world) tick(ms uint64) error {
	if ms == 0 {
		return nil
	}
	w.model.now += ms
	w.clock.Store(int64(w.model.now))
	if ms >= 60_000 {
		return w.bucket.land()
	}
	return nil
}

func (w *world) now() time.Time { return time.UnixMilli(w.clock.Load()) }

func (w *world) uint64() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opts.Fault.World == FaultSameIncarnation {
		return w.random.Uint64N(12) // one that is taken is not taken again
	}
	return w.random.Uint64()
}

func (w *world) unique() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strconv.FormatUint(w.random.Uint64(), 36)
}

// hotOptions are those of every process.
func (w *world) hotOptions() hot.Options {
	o := hot.Options{
		FS: w.disk.FS(), CacheBytes: 1 << 20, MemTableBytes: 256 << 10, Records: 4,
		SealTarget: w.Target, Producers: producers, Grace: grace, KeepHistory: keepHistory,
		Now: w.now, Random: w.uint64,
		Fatal: func(msg string) {
			w.fault.CompareAndSwap(nil, &msg)
			runtime.Goexit()
		},
	}
	if w.Forever {
		o.KeepHistory = -1
	}
	if w.opts.Fault.World == FaultNoGrace {
		o.Grace, o.KeepHistory = 1, 1
	}
	return o.WithFault(w.opts.Fault.Hot)
}

// open starts a process on the disk.
func (w *world) open(ctx context.Context, faults []Fault) error {
	p := &process{blobs: newTrouble(w.bucket)}
	w.process = p
	var err error
	if p.hot, err = hot.Open(dir, w.hotOptions()); err != nil {
		return fmt.Errorf("open hot tier: %w", err)
	}
	co := cold.Options{
		StoreID: p.hot.ID(), CacheBytes: int64(w.Cache), FetchBytes: uint64(2 * w.Frame), ReadAhead: -1,
		Decoders: 1, Unique: w.unique, Now: w.now,
	}
	if w.Ahead > 0 {
		co.ReadAhead = int64(w.Ahead)
	}
	if p.cold, err = cold.Open(p.blobs, co.WithFault(w.opts.Fault.Cold)); err != nil {
		return err
	}
	p.store = tier.New(tier.Options{
		Hot: p.hot, Cold: p.cold, ReadBytes: w.Page, BootstrapBytes: 4 * w.Page, SnapshotBytes: 1 << 10,
	}.WithFault(w.opts.Fault.Tier))
	for i := range p.compactors {
		if p.compactors[i], err = w.compactor(false); err != nil {
			return err
		}
	}
	if p.sweeper, err = w.compactor(true); err != nil {
		return err
	}
	if w.Backup {
		p.runner, err = backup.New(backup.Options{Hot: p.hot, Cold: p.cold, Blobs: p.blobs, Grace: grace})
		if err != nil {
			return err
		}
	}
	p.blobs.begin(faults)
	defer p.blobs.end()
	return p.claim(ctx)
}

func (w *world) compactor(sweep bool) (*compactor.Compactor, error) {
	return compactor.New(compactor.Options{
		Hot: w.hot, Cold: w.cold, Encoder: w.encoder, Concurrency: 1, SweepInterval: 1, SealingOff: sweep,
		Policy: compactor.Policy{Budget: w.Budget, Target: w.Target, MaxAge: 10 * time.Minute},
	})
}

// claim makes this process the owner of the bucket, as the server does when it starts.
func (p *process) claim(ctx context.Context) error {
	v := p.hot.View()
	inUse, err := v.HasObject(cold.LocalPrefix)
	v.Close()
	if err != nil {
		return err
	}
	err = p.cold.Claim(ctx, cold.ClaimOptions{Fence: p.hot.Fence(), Remember: p.hot.SetFence, InUse: inUse})
	if err != nil && (cold.IsUnavailable(err) || errors.Is(err, context.DeadlineExceeded)) && p.hot.Fence() > 0 {
		return nil // it serves without, and tries again
	}
	if err != nil {
		return fmt.Errorf("claim cold storage: %w", err)
	}
	return nil
}

// settle waits until the committer has done all that was queued, so that a step's
// effects on the disk are its own.
func (w *world) settle(ctx context.Context) error {
	err := w.hot.Abandon(context.WithoutCancel(ctx))
	if msg := w.fault.Load(); msg != nil {
		return fmt.Errorf("hot tier gave up: %s", *msg)
	}
	return err
}

// stop ends the process.
func (w *world) stop() error {
	if w.process == nil || w.cold == nil {
		return nil // it has not come far
	}
	for i := range w.sealings {
		w.drop(i)
	}
	w.cold.Close()
	return w.hot.Close()
}

// drop forgets a sealing.
func (w *world) drop(slot int) {
	if s := w.sealings[slot]; s != nil {
		s.Release()
		w.sealings[slot] = nil
	}
}

// restart starts again on the disk that is there. A crash may come while it starts.
func (w *world) restart(ctx context.Context, faults []Fault, c *Crash) error {
	for {
		d := w.disk
		last := w.arm(c, nil)
		err := w.open(ctx, faults)
		w.model.restarted()
		if err == nil {
			err = w.settle(ctx)
		}
		if !d.Disarm() || err != nil {
			return err
		}
		<-last.done
		if err := w.stop(); err != nil {
			return err
		}
		w.disk, c = last.disk, nil
	}
}

// lastMoment is what a crash leaves.
type lastMoment struct {
	done chan struct{} // closed when the rest is set
	disk *disk.Disk
	// seen is what a reader was shown right before.
	seen *hot.Record
}

// arm lets the process of the moment, or the one that is about to start, die at an
// operation of the disk. Nil arms nothing.
func (w *world) arm(c *Crash, look func(*hot.View) *hot.Record) *lastMoment {
	if c == nil {
		return nil
	}
	last := &lastMoment{done: make(chan struct{})}
	d := w.disk
	d.Arm(c.At, func() { w.die(last, d, c, look) })
	return last
}

func (w *world) die(last *lastMoment, d *disk.Disk, c *Crash, look func(*hot.View) *hot.Record) {
	if p := w.process; p != nil {
		p.blobs.dead.Store(true)
		if look != nil {
			// In a goroutine of its own, as a reader would.
			var reader sync.WaitGroup
			reader.Go(func() {
				v := p.hot.View()
				defer v.Close()
				last.seen = look(v)
			})
			reader.Wait()
		}
	}
	last.disk = d.CrashPart(c.Unsynced, c.Seed)
	close(last.done)
}

// Encoders shares, between runs, what is expensive to make.
type Encoders struct {
	mu      sync.Mutex // guards what follows
	byFrame map[int]*segment.Encoder
}

// NewEncoders returns an empty set.
func NewEncoders() *Encoders { return &Encoders{byFrame: make(map[int]*segment.Encoder)} }

func (e *Encoders) get(frame int) (*segment.Encoder, error) {
	if e == nil {
		e = NewEncoders()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if is := e.byFrame[frame]; is != nil {
		return is, nil
	}
	is, err := segment.NewEncoder(segment.Options{FrameBytes: frame, Level: 1, Concurrency: 4})
	if err == nil {
		e.byFrame[frame] = is
	}
	return is, err
}

func isCondition(err error) bool {
	return errors.Is(err, blob.ErrExists) || errors.Is(err, blob.ErrPrecondition)
}
