package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"firn/internal/blob"
	"firn/tier/cold"
	"firn/tier/hot"
)

// alive is how long after the last sign of a server in the bucket another one may
// still be there: twice the time between the marks that it leaves while it writes.
const alive = 20 * time.Minute

// RebuildOptions configures [Rebuild]. Blobs and Dir are required.
type RebuildOptions struct {
	Blobs blob.Store
	// Dir is where the hot tier is to be; it must not hold one.
	Dir string
	// Until takes the newest copy that is not younger, and nothing that was sealed
	// after it; zero: the newest copy, and what was sealed since.
	Until time.Time
	// TakeOver rebuilds also when a server may still be running on the store: it
	// can write nothing to the bucket from then on.
	TakeOver bool
	// Hot are the options of the store that is made.
	Hot    hot.Options
	Logger *slog.Logger
	// Stream is told of every stream that was rebuilt.
	Stream func(hot.Rebuilt) error
	// Now is the time by which a server may be alive; nil is time.Now.
	Now func() time.Time
}

// Report is what a rebuild has found. Every stream that was not closed may have had
// bytes after its tail, unless the server had stopped.
type Report struct {
	Store string `json:"store"`
	// Copy is the moment of the copy that was used.
	Copy time.Time `json:"copy"`
	// Stopped: the server had stopped in order, nothing came after the copy.
	Stopped bool `json:"stopped"`
	// Streams counts what was rebuilt, Attached the bytes that were sealed after the
	// copy.
	Streams  int    `json:"streams"`
	Attached uint64 `json:"attached_bytes"`
	// Skipped says which copies could not be used, and why.
	Skipped []string `json:"skipped_copies"`
	// Missing are objects that the copy names and that are not in the bucket, the
	// first of MissingCount.
	Missing      []string `json:"missing_objects"`
	MissingCount int      `json:"missing_object_count"`
	// Lost are ranges in the bucket that cannot be attached to a stream.
	Lost []LostRange `json:"lost_ranges"`
}

func newReport() *Report {
	return &Report{Skipped: []string{}, Missing: []string{}, Lost: []LostRange{}}
}

// LostRange is a range of a stream that is in the bucket and cannot be reached.
type LostRange struct {
	Stream string `json:"stream"`
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// Complete reports whether nothing is missing: neither is anything known to be lost,
// nor was a server running that may have taken more.
func (r *Report) Complete() bool {
	return r.Stopped && len(r.Skipped) == 0 && r.MissingCount == 0 && len(r.Lost) == 0
}

// maxMissing bounds the missing objects that a report names.
const maxMissing = 1000

// Rebuild makes a hot tier from the bucket alone, and takes the bucket for it. Errors:
// [hot.ErrNotEmpty], [ErrNoCopy], [ErrAlive], [ErrVersion], those of the bucket.
func Rebuild(ctx context.Context, o RebuildOptions) (*Report, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Stream == nil {
		o.Stream = func(hot.Rebuilt) error { return nil }
	}
	// First of all, as it locks the place.
	h, err := hot.StartRebuild(o.Dir, o.Hot)
	if err != nil {
		return nil, err
	}
	b := &rebuild{RebuildOptions: o, hot: h, report: newReport()}
	if err := b.run(ctx); err != nil {
		return nil, errors.Join(err, h.Abandon())
	}
	if err := h.Finish(); err != nil {
		return nil, err
	}
	return b.report, nil
}

// rebuild is a Rebuild under way.
type rebuild struct {
	RebuildOptions
	hot    *hot.Rebuild
	report *Report
	store  string
	owner  *cold.Owner
	// life is the highest that an object tells of.
	life uint64
	// used is the generation that was loaded, points how many copies of it.
	used   hot.Generation
	points int
}

func (b *rebuild) run(ctx context.Context) error {
	owner, info, err := cold.ReadOwner(ctx, b.Blobs)
	if err != nil {
		return err
	}
	if owner == nil {
		return fmt.Errorf("%w: there is no owner record; is it the right bucket and prefix?", ErrNoCopy)
	}
	b.owner, b.store, b.report.Store = owner, owner.Store, owner.Store
	chains, err := chainsOf(ctx, b.Blobs, b.store)
	if err != nil {
		return err
	}
	if err := b.check(ctx, chains, info.Modified); err != nil {
		return err
	}
	if err := b.load(ctx, chains); err != nil {
		return err
	}
	// Only what can be rebuilt is taken from who has it.
	if err := b.claim(ctx); err != nil {
		return err
	}
	if chains, err = b.again(ctx, chains); err != nil {
		return err
	}
	if err := b.reconcile(ctx); err != nil {
		return err
	}
	for _, c := range chains {
		if err := b.hot.KeepGeneration(c.Generation, len(c.Points) > 0); err != nil {
			return err
		}
	}
	return nil
}

// again loads what a server that was still running has copied before it lost the
// bucket.
func (b *rebuild) again(ctx context.Context, before []Chain) ([]Chain, error) {
	chains, err := chainsOf(ctx, b.Blobs, b.store)
	if err != nil || slices.EqualFunc(chains, before, sameChain) {
		return chains, err
	}
	b.report.Stopped = false
	fence := b.hot.Fence()
	if err := b.hot.Restart(); err != nil {
		return nil, err
	}
	if err := b.load(ctx, chains); err != nil {
		return nil, err
	}
	return chains, b.hot.SetFence(ctx, fence)
}

func sameChain(a, b Chain) bool {
	return a.Generation == b.Generation && len(a.Points) == len(b.Points) && len(a.Torn) == len(b.Torn)
}

// check refuses a store whose server may still be running: what it does from now on
// would be lost.
func (b *rebuild) check(ctx context.Context, chains []Chain, marked time.Time) error {
	last := marked
	stopped := false
	if len(chains) > 0 {
		c := chains[len(chains)-1]
		keys := c.Torn
		if n := len(c.Points); n > 0 && len(keys) == 0 {
			keys, stopped = c.Points[n-1].keys, c.Points[n-1].Stop
		}
		_, info, err := blob.ReadAll(ctx, b.Blobs, keys[len(keys)-1], 0, 0)
		if err != nil {
			return err
		}
		stopped = stopped && !info.Modified.Before(marked)
		if info.Modified.After(last) {
			last = info.Modified
		}
	}
	b.report.Stopped = stopped
	age := b.Now().Sub(last)
	if stopped || b.TakeOver || age >= alive {
		return nil
	}
	return fmt.Errorf("%w: the one of %s has left a sign in the bucket %v ago", ErrAlive, b.owner.Host, age.Round(time.Second))
}

// load takes the newest copy that is whole.
func (b *rebuild) load(ctx context.Context, chains []Chain) error {
	for _, c := range slices.Backward(chains) {
		points := c.Points
		if !b.Until.IsZero() {
			until := uint64(b.Until.UnixMilli())
			i := slices.IndexFunc(points, func(p Point) bool { return p.Ms > until })
			if i >= 0 {
				points = points[:i]
				b.report.Stopped = false
			}
		}
		for len(points) > 0 {
			good, err := b.try(ctx, points)
			if err == nil {
				b.report.Copy = time.UnixMilli(int64(points[good-1].Ms)).UTC()
				b.used, b.points = c.Generation, good
				if len(c.Torn) > 0 {
					b.Logger.Warn("the newest copy was not finished, the one before it is used", "objects", len(c.Torn))
				}
				return nil
			}
			if !errors.Is(err, ErrDamaged) {
				return err
			}
			// Never a part of what was there without a word.
			b.report.Skipped = append(b.report.Skipped, fmt.Sprintf("%s: %v",
				time.UnixMilli(int64(points[len(points)-1].Ms)).UTC().Format(time.RFC3339), err))
			b.report.Stopped = false
			b.Logger.Warn("a copy cannot be used, taking the one before it", "err", err)
			points = points[:good]
			if err := b.hot.Restart(); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("%w: store %s has none that could be used", ErrNoCopy, b.store)
}

// try loads copies from a base on. It returns how many are good.
func (b *rebuild) try(ctx context.Context, points []Point) (int, error) {
	r, err := newReader(b.Blobs, b.store)
	if err != nil {
		return 0, err
	}
	defer r.dec.Close()
	for i, p := range points {
		if err := r.load(ctx, p, b.hot.Load); err != nil {
			return i, err
		}
	}
	if err := b.hot.Loaded(); err != nil {
		return 0, err
	}
	if b.hot.ID() != b.store {
		return 0, fmt.Errorf("%w: it is of store %s", ErrDamaged, b.hot.ID())
	}
	b.life = r.life
	return len(points), nil
}

// reconcile attaches what was sealed after the copy.
func (b *rebuild) reconcile(ctx context.Context) error {
	found, err := b.search(ctx)
	if err != nil {
		return err
	}
	return b.hot.Reconcile(b.reconcileOptions(found))
}

func (b *rebuild) reconcileOptions(found []hot.Found) hot.ReconcileOptions {
	return hot.ReconcileOptions{
		Found: found, Life: b.life,
		Stream: func(s hot.Rebuilt) error {
			b.report.Streams++
			b.report.Attached += s.Tail - s.CopyTail
			return b.Stream(s)
		},
		Lost: func(f hot.Found, reason string) error {
			b.report.Lost = append(b.report.Lost, LostRange{
				Stream: f.Name.String(), From: f.Ref.From, To: f.Ref.To, Object: f.Ref.Object, Reason: reason,
			})
			return nil
		},
	}
}

// claim takes the bucket: whoever had it before can write nothing any more.
func (b *rebuild) claim(ctx context.Context) error {
	store, err := cold.Open(b.Blobs, cold.Options{StoreID: b.store, Logger: b.Logger})
	if err != nil {
		return err
	}
	defer store.Close()
	fence := max(b.hot.Fence(), b.owner.Fence)
	return store.Claim(ctx, cold.ClaimOptions{Fence: fence, Remember: b.hot.SetFence, InUse: true, Rebuilt: true})
}
