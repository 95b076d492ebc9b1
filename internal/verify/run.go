package verify

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Reader is a state of the hot tier.
type Reader = pebble.Reader

// RunOptions configure [Run]. State is required.
type RunOptions struct {
	// State returns one state of the hot tier, and what gives it back. It is asked
	// again for the present one; InUse says that it may be another then.
	State func() (Reader, func())
	InUse bool
	// Remote is the object store, nil if there is none. Local holds what was written
	// before there was one, nil if there is none.
	Remote, Local blob.Store

	// Structure alone: objects are listed and their descriptors read, not their bytes.
	Structure bool
	// Rate bounds what is read of objects, bytes a second; 0 is no bound.
	Rate int64
	// Concurrency is how many objects are read at a time (default 4). Each takes the
	// memory of its descriptor and of its largest frame.
	Concurrency int
	// Progress is called about once a second, from one goroutine at a time.
	Progress func(Progress)
}

// run is one run.
type run struct {
	RunOptions
	catalog *Catalog
	decoder *segment.Decoder
	limit   *rate.Limiter
	// named says what the catalog has of each object.
	named map[string]*object

	mu       sync.Mutex // guards what follows
	report   *Report
	progress Progress
	told     time.Time
}

// object is what the catalog has of one object.
type object struct {
	key      string
	size     uint64
	parts    []part
	snapshot *Snapshot
}

// part is a range of an object that a stream names.
type part struct {
	id  stream.ID
	ref segment.Ref
}

// Run looks at a whole store: hot tier, objects, and whether they fit. The error says
// that the looking failed; what is wrong with the store is in the report. It takes
// memory for every key of the hot tier.
func Run(ctx context.Context, o RunOptions) (*Report, error) {
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	r := &run{RunOptions: o, report: &Report{Problems: []Problem{}}, named: make(map[string]*object), told: time.Now()}
	if o.Rate > 0 {
		r.limit = rate.NewLimiter(rate.Limit(o.Rate), int(max(o.Rate, maxTake)))
	}
	var err error
	if r.decoder, err = segment.NewDecoder(segment.DecoderOptions{}); err != nil {
		return nil, err
	}
	if err := r.hotTier(); err != nil {
		return nil, err
	}
	r.gather()
	if err := r.objects(ctx); err != nil {
		return nil, err
	}
	return r.report, nil
}

// hotTier checks what is on the local disk.
func (r *run) hotTier() error {
	lines := make(map[stream.ID]bool) // whether the last value ends after an LF
	// It is held no longer than that: it keeps the hot tier from shrinking.
	hot, release := r.State()
	defer release()
	catalog, err := Load(hot, Options{Value: func(id stream.ID, _ uint64, payload []byte) error {
		if len(payload) > 0 {
			lines[id] = payload[len(payload)-1] == '\n'
		}
		return nil
	}})
	if err != nil {
		return err
	}
	r.catalog = catalog
	for _, p := range catalog.Check() {
		r.report.add(r.catalog, p)
	}
	r.report.Store = catalog.StoreID
	r.report.Streams = len(catalog.Streams)
	r.report.HotBytes = catalog.State.Hot
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		if s := catalog.Streams[id]; s != nil && s.Mode == stream.JSON && !lines[id] {
			r.report.add(r.catalog, Problem{Code: CodeHot, Stream: id, Text: "its last message is cut"})
		}
	}
	return nil
}

// gather collects what the catalog names.
func (r *run) gather() {
	get := func(key string) *object {
		n := r.named[key]
		if n == nil {
			n = &object{key: key, size: r.catalog.Objects[key].Size}
			r.named[key] = n
			r.report.ObjectBytes += n.size
		}
		return n
	}
	for id, refs := range r.catalog.Segments {
		for _, ref := range refs {
			n := get(ref.Object)
			n.parts = append(n.parts, part{id, ref})
			r.report.Segments++
		}
	}
	for _, s := range r.catalog.Streams {
		if s.Snapshot != nil {
			get(s.Snapshot.Object).snapshot = s.Snapshot
			r.report.Snapshots++
		}
	}
	r.report.Objects = len(r.named)
	r.progress = Progress{Total: len(r.named), Bytes: r.report.ObjectBytes}
}

// localPrefix begins the keys of objects that are kept where there is no object store.
const localPrefix = "local/"

// place returns the store that is to have an object, nil when it is not there.
func (r *run) place(key string) blob.Store {
	if strings.HasPrefix(key, localPrefix) {
		return r.Local
	}
	return r.Remote
}

// objects lists the stores and looks at each object that is named.
func (r *run) objects(ctx context.Context) error {
	there := make(map[string]int64, len(r.named))
	for _, store := range []blob.Store{r.Remote, r.Local} {
		if store == nil {
			continue
		}
		if err := r.list(ctx, store, there); err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(r.Concurrency)
	for _, key := range slices.Sorted(maps.Keys(r.named)) {
		if ctx.Err() != nil {
			break
		}
		n := r.named[key]
		size, ok := there[key]
		switch {
		case !ok && !r.gone(key):
			r.problem(Problem{Code: CodeMissing, Stream: n.owner(), Object: key, Text: "the store does not have it"})
			r.tell(nil)
		case !ok:
			r.tell(nil)
		default:
			g.Go(func() error { return r.look(ctx, n, size) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.finish()
	return nil
}

// owner is a stream that names the object.
func (n *object) owner() stream.ID {
	if len(n.parts) > 0 {
		return n.parts[0].id
	}
	return 0
}

// list notes the sizes of the objects that are named, and the keys that nobody knows.
func (r *run) list(ctx context.Context, store blob.Store, there map[string]int64) error {
	prefix := r.catalog.StoreID + "/"
	return store.List(ctx, "", "", func(i blob.Info) error {
		if r.named[i.Key] != nil {
			there[i.Key] = i.Size
			return nil
		}
		own := strings.TrimPrefix(i.Key, localPrefix)
		if _, known := r.catalog.Objects[i.Key]; known || !strings.HasPrefix(own, prefix) || strings.HasPrefix(own, prefix+copies) {
			return nil
		}
		if state, err := r.current(i.Key); err != nil || state != 0 {
			return err
		}
		r.report.unknown(i.Key)
		return nil
	})
}

// copies begins the keys of the catalog's own copies, behind the store's id.
const copies = "catalog/"

// gone reports whether an object that was named is not named any more: one may come
// and go while this runs.
func (r *run) gone(key string) bool {
	if !r.InUse {
		return false
	}
	state, err := r.current(key)
	return err == nil && state != Live
}

// current returns the state of an object in a hot tier that is in use, 0 if it does
// not know it.
func (r *run) current(key string) (byte, error) {
	if !r.InUse {
		return 0, nil
	}
	db, release := r.State()
	defer release()
	value, closer, err := db.Get(append([]byte{'o'}, key...))
	if err == pebble.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read store: %w", err)
	}
	defer closer.Close()
	in, _ := versions(value)
	return in.byte(), nil
}

func (r *run) problem(p Problem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.add(r.catalog, p)
	r.progress.Found = r.report.Found
}

func (r *run) unchecked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.report.Unchecked++
}

// tell notes that an object has been looked at, or bytes have been read.
func (r *run) tell(read []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if read == nil {
		r.progress.Objects++
	}
	r.progress.Read += uint64(len(read))
	if r.Progress != nil && time.Since(r.told) >= time.Second {
		r.told = time.Now()
		r.Progress(r.progress)
	}
}

// finish completes the report.
func (r *run) finish() {
	r.report.ReadBytes = r.progress.Read
	slices.SortStableFunc(r.report.Problems, func(a, b Problem) int { return strings.Compare(a.Object, b.Object) })
}

// maxTake is how much is read between two waits for the rate.
const maxTake = 256 << 10

// throttled reads at the run's rate and counts what it reads.
type throttled struct {
	ctx context.Context
	r   *run
	in  io.Reader
}

// Read waits for its turn first.
func (t throttled) Read(b []byte) (int, error) {
	b = b[:min(len(b), maxTake)]
	if t.r.limit != nil {
		if err := t.r.limit.WaitN(t.ctx, len(b)); err != nil {
			return 0, err
		}
	}
	n, err := t.in.Read(b)
	if n > 0 {
		t.r.tell(b[:n])
	}
	return n, err
}
