package hot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/pkg/stream"
)

// ErrNotEmpty refuses to rebuild where there is a store.
var ErrNotEmpty = errors.New("data directory is not empty")

// loadBytes bounds a batch of what is loaded.
const loadBytes = 4 << 20

// Rebuild is a store in the making: a copy is loaded into it, then it is reconciled
// with what is left of the bytes that the copy names, and at the end it takes its
// place. Until then it lies beside that place: a crash leaves nothing that a server
// would take for a store. It is for one goroutine.
type Rebuild struct {
	s     *Store
	dir   string // where it is to be
	batch *pebble.Batch
	// was is the state that the copy had.
	was state
}

// StartRebuild begins a store for a directory that must not have one. What an earlier
// attempt left is removed. Errors: [ErrNotEmpty], [ErrLocked].
func StartRebuild(dir string, o Options) (*Rebuild, error) {
	o = o.withDefaults()
	if err := mustBeEmpty(o.FS, dir); err != nil {
		return nil, err
	}
	r := &Rebuild{dir: dir, s: &Store{opts: o, log: o.Logger, dir: dir + ".rebuild", uses: newUses()}}
	r.s.metrics = newMetrics(nil, r.s)
	return r, r.begin()
}

// mustBeEmpty refuses a directory that has anything in it.
func mustBeEmpty(disk vfs.FS, dir string) error {
	names, err := disk.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into %s: %w", dir, err)
	}
	if len(names) > 0 {
		return fmt.Errorf("%w: %s", ErrNotEmpty, dir)
	}
	return nil
}

// begin makes an empty database.
func (r *Rebuild) begin() error {
	if err := r.clear(); err != nil {
		return fmt.Errorf("remove an earlier attempt: %w", err)
	}
	if err := r.s.openPebble(); err != nil {
		return err
	}
	r.s.table = newTable(r.s.db, 1)
	r.batch = r.s.db.NewBatch()
	return nil
}

// clear removes what an attempt left that nobody works on any more.
func (r *Rebuild) clear() error {
	disk := r.s.opts.FS
	if _, err := disk.Stat(r.s.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := pebble.LockDirectory(r.s.dir, disk)
	if err != nil {
		if isLocked(err) {
			return fmt.Errorf("%w: %s", ErrLocked, r.s.dir)
		}
		return err
	}
	return errors.Join(lock.Close(), disk.RemoveAll(r.s.dir))
}

// Restart forgets what was loaded.
func (r *Rebuild) Restart() error {
	if err := r.close(); err != nil {
		return err
	}
	return r.begin()
}

// Load applies an entry of a copy. Copies are loaded in order, from a base on.
func (r *Rebuild) Load(e CopyEntry) (err error) {
	switch e.Op {
	case CopySet:
		err = r.batch.Set(e.Key, e.Value, nil)
	case CopyDelete:
		err = r.batch.Delete(e.Key, nil)
	case CopyDeleteRange:
		err = r.batch.DeleteRange(e.Key, e.Value, nil)
	default:
		err = fmt.Errorf("%w: unknown entry %d of a copy", ErrFormat, e.Op)
	}
	if err == nil && r.batch.Len() >= loadBytes {
		err = r.flush()
	}
	return err
}

func (r *Rebuild) flush() error {
	err := r.batch.Commit(pebble.NoSync)
	if err == nil {
		err = r.batch.Close()
	}
	r.batch = r.s.db.NewBatch()
	return err
}

// Loaded ends the loading. Errors: [ErrFormat] if the copy is of a release that this
// one does not know, [ErrDamaged] if it is none of a whole store.
func (r *Rebuild) Loaded() error {
	if err := r.flush(); err != nil {
		return err
	}
	v, err := get(r.s.db, keyFormat)
	if err != nil {
		return err
	}
	if v == nil {
		return fmt.Errorf("%w: the copy has no format", ErrDamaged)
	}
	if err := r.s.load(); err != nil {
		return err
	}
	r.was = *r.s.state.Load()
	return nil
}

// ID is the id of the store.
func (r *Rebuild) ID() string { return r.s.id }

// Fence is the highest fence that the copy knows of.
func (r *Rebuild) Fence() uint64 { return r.s.state.Load().Fence }

// SetFence remembers the fence of a claim; it is durable when it returns.
func (r *Rebuild) SetFence(_ context.Context, number uint64) error {
	st := *r.s.state.Load()
	st.Fence = max(st.Fence, number)
	r.s.state.Store(&st)
	return r.s.db.Set(keyState, st.encode(), pebble.Sync)
}

// Attachable reports whether an object may hold ranges that were named after the copy:
// the copy does not know it, only intended it, or names some of it (named).
func (r *Rebuild) Attachable(object string) (ok, named bool, err error) {
	raw, err := get(r.s.db, keyObject(object))
	if err != nil || raw == nil {
		return err == nil, false, err
	}
	o, err := decodeObject(raw)
	named = o.state == Live
	return err == nil && (o.state == Intended || named && o.live < o.content), named, err
}

// LiveObjects calls fn for each object that a stream names, with its size, in the order
// of keys, until fn returns false.
func (r *Rebuild) LiveObjects(fn func(object string, size uint64) bool) error {
	it, err := r.s.db.NewIter(iterOptions([]byte{kindObject}, []byte{kindObject + 1}))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		o, err := decodeObject(it.Value())
		if err != nil {
			return closeIter(it, err)
		}
		if o.state == Live && !fn(string(it.Key()[1:]), o.size) {
			break
		}
	}
	return closeIter(it, nil)
}

// KeepGeneration records a generation of copies that is there, so that it is removed
// when newer ones have taken its place.
func (r *Rebuild) KeepGeneration(g Generation, complete bool) error {
	return r.s.db.Set(keyGeneration(g), GenerationRecord{Generation: g, Complete: complete}.encode(), pebble.NoSync)
}

// txn begins a step of the reconciliation.
func (r *Rebuild) txn() *txn {
	return &txn{
		limits: r.s.limits(), table: r.s.table, batch: r.s.db.NewIndexedBatch(), now: r.s.now(),
		state: *r.s.state.Load(), drafts: make(map[stream.ID]*draft),
	}
}

// commit ends a step.
func (r *Rebuild) commit(t *txn) error {
	if _, err := t.finish(*r.s.state.Load()); err != nil {
		return err
	}
	if err := t.batch.Commit(pebble.NoSync); err != nil {
		return err
	}
	st := t.state
	r.s.state.Store(&st)
	return t.batch.Close()
}

// Finish puts the store in its place. All of it is durable when it returns.
func (r *Rebuild) Finish() error {
	if err := r.s.db.Flush(); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	if err := r.close(); err != nil {
		return err
	}
	disk := r.s.opts.FS
	// A server may have been started there meanwhile.
	if err := mustBeEmpty(disk, r.dir); err != nil {
		return err
	}
	if err := disk.RemoveAll(r.dir); err != nil {
		return fmt.Errorf("take the place: %w", err)
	}
	if err := disk.Rename(r.s.dir, r.dir); err != nil {
		return fmt.Errorf("take the place: %w", err)
	}
	parent, err := disk.OpenDir(disk.PathDir(r.dir))
	if err != nil {
		return fmt.Errorf("take the place: %w", err)
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// Abandon removes what was made. It does nothing after Finish.
func (r *Rebuild) Abandon() error {
	if r.s.db == nil {
		return nil
	}
	return errors.Join(r.close(), r.s.opts.FS.RemoveAll(r.s.dir))
}

func (r *Rebuild) close() error {
	if r.s.db == nil {
		return nil
	}
	r.s.table.close()
	err := errors.Join(r.batch.Close(), r.s.db.Close())
	r.s.db = nil
	r.s.cache.Unref()
	return err
}
