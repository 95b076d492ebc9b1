package tiertest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/tiertest/disk"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Options configure a run. The zero Options draw one short run from seed 0.
type Options struct {
	Seed uint64
	// Steps is how many steps are drawn (default 40). Script, if there is one, is
	// run instead of them.
	Steps  int
	Script []Step
	// Fault is planted in the store.
	Fault hot.Fault
	// Answered, if set, is told the kind of each command and its error.
	Answered func(do string, err error)
	// Finished, if set, is given the disk of a run without failure; the store in
	// [Dir] is closed.
	Finished func(vfs.FS)
}

// Failure is a run in which the store broke a rule. Script ends with the step that
// showed it.
type Failure struct {
	Seed   uint64
	Script []Step
	Err    error
}

// Error names the seed and prints the script.
func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, step %d: %v\nscript:", f.Seed, len(f.Script), f.Err)
	for _, s := range f.Script {
		b.WriteString("\n")
		b.WriteString(s.String())
	}
	return b.String()
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Run does one run. Every error but those of the options is a [*Failure].
func Run(ctx context.Context, o Options) error {
	r, err := newRun(o)
	if err != nil {
		return err
	}
	steps := len(o.Script)
	if steps == 0 {
		if steps = o.Steps; steps == 0 {
			steps = 40
		}
	}
	fail := func(err error) error { return &Failure{Seed: o.Seed, Script: r.script, Err: err} }
	if err := r.open(nil); err != nil {
		return fail(err)
	}
	g := newGenerator(o.Seed)
	for i := range steps {
		var s Step
		if o.Script != nil {
			s = o.Script[i]
		} else {
			s = g.step(r.model)
		}
		r.script = append(r.script, s)
		if err := r.step(ctx, s); err != nil {
			return fail(err)
		}
	}
	if err := r.step(ctx, Step{Restart: true}); err != nil {
		return fail(fmt.Errorf("last restart: %w", err))
	}
	if err := r.store.Close(); err != nil {
		return fail(err)
	}
	if o.Finished != nil {
		o.Finished(r.disk.Mem())
	}
	return nil
}

// run is the state of one run.
type run struct {
	opts       Options
	disk       *disk.Disk
	store      *hot.Store
	model      *model
	sealTarget uint64
	objects    map[string][]byte // the fake object store; it survives crashes
	encoder    *segment.Encoder
	decoder    *segment.Decoder
	random     *rand.Rand // of the checks
	script     []Step

	mu  sync.Mutex
	ids *rand.Rand // of the store; guarded by mu
}

// epoch is when every run begins.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newRun(o Options) (*run, error) {
	r := &run{
		opts: o, disk: disk.New(), sealTarget: 1000,
		objects: make(map[string][]byte),
		random:  rand.New(rand.NewPCG(o.Seed, 1)),
		ids:     rand.New(rand.NewPCG(o.Seed, 2)),
	}
	l := limits{producers: 3, grace: 60_000, intentGrace: 600_000, keepHistory: 3_600_000}
	if o.Seed%4 == 3 {
		l.keepHistory = never
	}
	r.model = newModel(l, uint64(epoch.UnixMilli()))
	var err error
	if r.encoder, err = segment.NewEncoder(segment.Options{FrameBytes: 700, Level: 1}); err != nil {
		return nil, err
	}
	r.decoder, err = segment.NewDecoder(segment.DecoderOptions{Concurrency: 1})
	return r, err
}

// open starts the store on the disk, which is checked before: against itself and,
// if given, by accept.
func (r *run) open(accept func(*contents) error) error {
	if accept != nil {
		c, err := inspect(r.disk.Mem(), Dir)
		if err != nil {
			return fmt.Errorf("check store: %w", err)
		}
		if err := accept(c); err != nil {
			return err
		}
	}
	if err := r.start(); err != nil {
		return err
	}
	m := r.model.clone()
	m.target = r.sealTarget
	r.setModel(m)
	return nil
}

func (r *run) start() error {
	o := hot.Options{
		FS: r.disk.FS(), CacheBytes: 1 << 20, MemTableBytes: 256 << 10, Records: 4,
		SealTarget: r.sealTarget, Producers: uint64(r.model.producers),
		Grace: time.Minute, KeepHistory: time.Hour,
		Now: r.clock(),
		Random: func() uint64 {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.ids.Uint64()
		},
		Fatal: func(msg string) { panic(msg) },
	}
	if r.model.keepHistory == never {
		o.KeepHistory = -1
	}
	var err error
	if r.store, err = hot.Open(Dir, o.WithFault(r.opts.Fault)); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	return nil
}

// clock is the store's: it stands still during a step.
func (r *run) clock() func() time.Time {
	return func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.UnixMilli(int64(r.model.now))
	}
}

// setModel changes what the clock shows.
func (r *run) setModel(m *model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.model = m
}

func (r *run) step(ctx context.Context, s Step) error {
	if s.Tick > 0 {
		m := r.model.clone()
		m.now += s.Tick
		r.setModel(m)
	}
	if s.SealTarget > 0 {
		r.sealTarget = s.SealTarget
	}
	g := &group{run: r, answers: make([]*outcome, len(s.Ops)), captured: make(chan struct{})}
	for _, o := range s.Ops {
		c, err := r.prepare(o)
		if err != nil {
			return err
		}
		g.calls = append(g.calls, c)
	}
	if s.Crash != nil {
		r.disk.Arm(s.Crash.At, func() { g.capture(s.Crash, !s.Restart) })
	}
	g.issue(ctx)
	if r.opts.Answered != nil {
		for i, c := range g.calls {
			r.opts.Answered(c.op.Do, g.answers[i].err)
		}
	}
	if s.Crash == nil {
		m, err := resolve(r.model, g.calls, g.answers, g.shows)
		if err != nil {
			return err
		}
		r.setModel(m)
	}
	switch {
	case s.Restart:
		return r.restart(g, s.Crash)
	case s.Crash != nil:
		if !r.disk.Disarm() {
			g.capture(s.Crash, true)
		}
		return r.crash(g)
	}
	return nil
}

// restart closes the store and opens it again; a crash may come in between.
func (r *run) restart(g *group, c *Crash) error {
	if err := r.store.Close(); err != nil {
		return err
	}
	if c == nil {
		if err := r.open(r.equal); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
		return r.checkReads()
	}
	if err := r.start(); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if !r.disk.Disarm() {
		g.capture(c, false)
	}
	return r.crash(g)
}

func (r *run) equal(c *contents) error { return r.model.equal(c) }

// crash leaves the store for the disk that g has captured.
func (r *run) crash(g *group) error {
	<-g.captured // it may have begun in the background of the store
	if err := r.store.Close(); err != nil {
		return err
	}
	r.disk = g.after
	err := r.open(func(c *contents) error {
		for _, call := range g.calls {
			call.found = c.Names[stream.Name{Bucket: call.op.Bucket, ID: call.op.ID}]
		}
		m, err := resolve(r.model, g.calls, g.acknowledged, func(m *model) error { return m.equal(c) })
		if err != nil {
			return err
		}
		r.setModel(m)
		return g.remembers(m)
	})
	if err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	return r.checkReads()
}

// group is a step's commands in flight.
type group struct {
	run   *run
	calls []*call

	mu      sync.Mutex
	answers []*outcome

	// What was true when the disk was copied, to be read once captured is closed.
	captured     chan struct{}
	after        *disk.Disk
	acknowledged []*outcome
	seen         map[stream.ID]uint64 // tails that a reader was shown
}

// issue sends all calls at once and waits for their answers.
func (g *group) issue(ctx context.Context) {
	var wg sync.WaitGroup
	for i, c := range g.calls {
		wg.Go(func() {
			o := issue(ctx, g.run.store, c)
			g.mu.Lock()
			g.answers[i] = &o
			g.mu.Unlock()
		})
	}
	wg.Wait()
}

// capture is the crash: what is acknowledged and what readers have seen before it
// must be on the disk that it leaves.
func (g *group) capture(c *Crash, look bool) {
	g.mu.Lock()
	acknowledged := append([]*outcome(nil), g.answers...)
	g.mu.Unlock()
	seen := make(map[stream.ID]uint64)
	if look {
		// In a goroutine of its own, as a reader would.
		var wg sync.WaitGroup
		wg.Go(func() { g.look(seen) })
		wg.Wait()
	}
	g.after, g.acknowledged, g.seen = g.run.disk.CrashPart(c.Unsynced, c.Seed), acknowledged, seen
	close(g.captured)
}

func (g *group) look(seen map[stream.ID]uint64) {
	v := g.run.store.View()
	defer v.Close()
	for _, c := range g.calls {
		name := stream.Name{Bucket: c.op.Bucket, ID: c.op.ID}
		rec, err := v.Incarnation(c.target)
		if c.op.Do == "create" || c.op.Do == "fork" {
			rec, err = v.Stream(name)
		}
		if err == nil {
			seen[rec.ID] = rec.Tail
		}
	}
}

// remembers holds the store to what a reader was shown; the model has streams that
// are gone, too.
func (g *group) remembers(m *model) error {
	tails := make(map[stream.ID]uint64)
	for e := range maps.Values(m.streams) {
		tails[e.id] = e.tail()
	}
	for id, tail := range g.seen {
		if is, ok := tails[id]; !ok || is < tail {
			return fmt.Errorf("a reader was shown %d bytes of %s, of which %d are left", tail, id, is)
		}
	}
	return nil
}
