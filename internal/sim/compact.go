package sim

import (
	"context"
	"errors"
	"fmt"

	"firn/compactor"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

// sealing is an object on its way, in the hands of one of the compactors.
type sealing struct {
	*compactor.Sealing
	intended, uploaded bool
}

// tolerated are failures of the compactor that change nothing but what it leaves to
// the sweep.
func (w *world) tolerated(s Step, err error) error {
	if err == nil || errors.Is(err, hot.ErrConflict) || w.excused(s, err) || errors.Is(err, stream.ErrNotFound) {
		return nil
	}
	if len(s.Faults) > 0 && (errors.Is(err, cold.ErrFenced) || errors.Is(err, context.Canceled)) {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Do, err)
}

// doBuild begins a sealing of streams of one bucket and mode.
func doBuild(_ context.Context, w *world, s Step) error {
	return w.begin(s, func(ids []stream.ID) (*compactor.Sealing, error) { return w.compactors[s.Who].Build(ids...) })
}

// doMerge begins to put runs of small segments into one object.
func doMerge(ctx context.Context, w *world, s Step) error {
	return w.begin(s, func(ids []stream.ID) (*compactor.Sealing, error) {
		return w.compactors[s.Who].BuildMerge(ctx, ids...)
	})
}

// doCopy begins to put what is needed of an object into another one: of the first
// object of a stream.
func doCopy(ctx context.Context, w *world, s Step) error {
	return w.begin(s, func(ids []stream.ID) (*compactor.Sealing, error) {
		v := w.hot.View()
		refs, err := v.Segments(ids[0], 0, ^uint64(0), 1)
		v.Close()
		if err != nil || len(refs) == 0 {
			return nil, err
		}
		return w.compactors[s.Who].BuildCopy(ctx, refs[0].Object)
	})
}

// doSeal takes all steps of a sealing.
func doSeal(ctx context.Context, w *world, s Step) error {
	for _, step := range []func(context.Context, *world, Step) error{doBuild, doIntend, doUpload, doCommit} {
		if err := step(ctx, w, s); err != nil {
			return err
		}
	}
	return nil
}

// doGrow appends to a stream and seals that, several times: it gets small segments.
func doGrow(ctx context.Context, w *world, s Step) error {
	one := s
	one.Streams = []string{s.Stream}
	for range min(s.At, 20) {
		one.Fill++
		if err := doAppend(ctx, w, one); err != nil {
			return err
		}
		if err := doSeal(ctx, w, one); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) begin(s Step, build func([]stream.ID) (*compactor.Sealing, error)) error {
	var ids []stream.ID
	var first *life
	for _, name := range s.Streams {
		is := w.model.names[nameOf(name)]
		if is == nil || first != nil && (is.json != first.json || is.name.Bucket != first.name.Bucket) {
			continue
		}
		if first == nil {
			first = is
		}
		ids = append(ids, is.id)
	}
	w.drop(s.Slot)
	if len(ids) == 0 {
		return nil
	}
	b, err := build(ids)
	if err == nil && b != nil {
		w.sealings[s.Slot] = &sealing{Sealing: b}
		w.tell(s.Do + ", done")
	}
	return w.tolerated(s, err)
}

func doIntend(ctx context.Context, w *world, s Step) error {
	b := w.sealings[s.Slot]
	if b == nil || b.intended {
		return nil
	}
	err := b.Intend(ctx)
	if b.intended = true; err != nil {
		w.drop(s.Slot) // nothing may be written
	}
	return w.tolerated(s, err)
}

func doUpload(ctx context.Context, w *world, s Step) error {
	b := w.sealings[s.Slot]
	if b == nil || !b.intended || b.uploaded {
		return nil
	}
	err := b.Upload(ctx)
	if errors.Is(err, hot.ErrConflict) {
		w.tell("upload, given up")
	}
	if b.uploaded = err == nil; err != nil {
		return errors.Join(w.tolerated(s, err), doAbandon(context.WithoutCancel(ctx), w, s))
	}
	return nil
}

func doCommit(ctx context.Context, w *world, s Step) error {
	b := w.sealings[s.Slot]
	if b == nil || !b.uploaded {
		return nil
	}
	err := b.Commit(ctx)
	if err == nil {
		w.drop(s.Slot)
		w.tell("commit, done")
		return nil
	}
	if errors.Is(err, hot.ErrConflict) {
		w.tell("commit, conflict")
	}
	return errors.Join(w.tolerated(s, err), doAbandon(context.WithoutCancel(ctx), w, s))
}

func doAbandon(ctx context.Context, w *world, s Step) error {
	b := w.sealings[s.Slot]
	if b == nil {
		return nil
	}
	err := b.Abandon(ctx)
	w.drop(s.Slot)
	return w.tolerated(s, err)
}

// doEvict gives up hot copies, of sealed bytes alone whatever is asked for.
func doEvict(ctx context.Context, w *world, s Step) error {
	is := w.model.names[nameOf(s.Stream)]
	if is == nil {
		return nil
	}
	if s.At == 0 {
		return w.tolerated(s, w.compactors[s.Who].EvictStream(ctx, is.id))
	}
	return w.tolerated(s, w.hot.Evict(ctx, is.id, is.place(s.At, s.Off)))
}

func doPass(ctx context.Context, w *world, s Step) error {
	_, err := w.compactors[s.Who].Pass(ctx)
	if err == nil {
		_, err = w.compactors[s.Who].Reclaim(ctx)
	}
	return w.tolerated(s, err)
}

// doSweep trims and sweeps, and does nothing else.
func doSweep(ctx context.Context, w *world, s Step) error {
	_, err := w.sweeper.Pass(ctx)
	return w.tolerated(s, err)
}

// doTrim takes a single small step of letting go.
func doTrim(ctx context.Context, w *world, s Step) error {
	v := w.hot.View()
	ids, err := v.Trimmable(1)
	v.Close()
	if err == nil && len(ids) > 0 {
		_, err = w.hot.Trim(ctx, ids[0], 1)
	}
	return w.tolerated(s, err)
}

// reader is one that found where bytes are and then paused.
type reader struct {
	since uint64 // ms
	refs  []segment.Ref
	want  [][]byte
}

// doPause looks up where a stream's sealed bytes are.
func doPause(_ context.Context, w *world, s Step) error {
	is := w.model.names[nameOf(s.Stream)]
	w.readers[s.Slot] = nil
	if is == nil {
		return nil
	}
	v := w.hot.View()
	defer v.Close()
	rec, err := v.Incarnation(is.id)
	if err != nil {
		return err
	}
	r := &reader{since: w.model.now}
	if r.refs, err = v.Segments(is.id, rec.Floor, rec.Sealed, 100); err != nil {
		return err
	}
	for _, ref := range r.refs {
		if ref.To > is.tail() {
			return fmt.Errorf("%s is sealed to %d, its tail is %d", is.name, ref.To, is.tail())
		}
		r.want = append(r.want, is.content[ref.From:ref.To])
	}
	w.readers[s.Slot] = r
	return nil
}

// doResume reads what a paused reader has found. It is there for the grace at least.
func doResume(ctx context.Context, w *world, s Step) error {
	r := w.readers[s.Slot]
	w.readers[s.Slot] = nil
	if r == nil || w.model.now >= r.since+uint64(grace.Milliseconds()) {
		return nil
	}
	// One that remembers nothing: the bytes come from the bucket.
	store, err := cold.Open(w.blobs, cold.Options{StoreID: w.hot.ID(), CacheBytes: 1, Decoders: 1, ReadAhead: -1}.WithFault(w.opts.Fault.Cold))
	if err != nil {
		return err
	}
	defer store.Close()
	for i, ref := range r.refs {
		got, err := store.Read(ctx, nil, ref, ref.From, ref.To)
		switch {
		case w.excused(s, err):
		case err != nil:
			return fmt.Errorf("paused reader: %w", err)
		case string(got) != string(r.want[i]):
			return fmt.Errorf("paused reader: %s has other bytes than were appended", ref.Object)
		default:
			w.tell("resume, done")
		}
	}
	return nil
}

// doLand lets late puts happen.
func doLand(_ context.Context, w *world, _ Step) error { return w.bucket.land() }

// doKeep keeps a copy of the disk, for doStale.
func doKeep(_ context.Context, w *world, s Step) error {
	w.older, w.olderFence = w.disk.CrashPart(0, s.Fill), w.hot.Fence()
	return nil
}

// doStale starts a server on the older copy of the disk, which the owner record must
// refuse once it has the fence of a later start or mark.
func doStale(ctx context.Context, w *world, _ Step) error {
	if w.older == nil {
		return nil
	}
	if o, _, err := cold.ReadOwner(ctx, w.bucket); err != nil || o == nil || o.Fence <= w.olderFence {
		return err
	}
	defer func() { w.older = nil }()
	owner, older := w.process, w.older
	mine := w.disk
	w.disk = older.CrashPart(0, 0)
	err := w.open(context.WithoutCancel(ctx), nil)
	cut := false // the crash that was meant for the owner has cut this one off
	if p := w.process; p != owner {
		cut = p.blobs.dead.Load()
		err = errors.Join(err, w.stop())
	}
	w.process, w.disk = owner, mine
	if cut {
		return nil
	}
	if !errors.Is(err, cold.ErrStale) {
		return fmt.Errorf("a server started on an older copy of the disk: %v", err)
	}
	w.tell("stale, refused")
	return nil
}
