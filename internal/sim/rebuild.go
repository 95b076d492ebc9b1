package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/tiertest/disk"
	"firn/internal/verify"
	"firn/pkg/stream"
)

// copied is what the model was when the catalog was copied to the bucket.
type copied struct {
	model *model
	ms    uint64
	sure  bool // the copy is there
}

// doBackup copies the catalog to the bucket.
func doBackup(ctx context.Context, w *world, s Step) error {
	if w.runner == nil {
		return nil
	}
	c := copied{model: w.model.clone(), ms: w.model.now}
	_, err := w.runner.Copy(ctx)
	c.sure = err == nil
	w.copies = append(w.copies, c)
	if blob.Retryable(err) && (len(s.Faults) > 0 || w.blobs.dead.Load()) {
		return nil
	}
	return w.tolerated(s, err)
}

// doLose loses the disk and makes the store again from the bucket.
func doLose(ctx context.Context, w *world, _ Step) error {
	if !slices.ContainsFunc(w.copies, func(c copied) bool { return c.sure }) {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	sealed, err := w.sealedTo()
	if err != nil {
		return err
	}
	w.blobs.end() // a rebuild is for who has a bucket that works
	w.blobs.dead.Store(true)
	if err := w.stop(); err != nil {
		return err
	}
	if err := w.bucket.land(); err != nil { // all that was under way has arrived by now
		return err
	}
	w.process, w.disk = nil, disk.New()
	report, err := backup.Rebuild(ctx, backup.RebuildOptions{
		Blobs: w.bucket, Dir: dir, TakeOver: true, Hot: w.hotOptions(), Now: w.now,
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", err)
	}
	if report.MissingCount > 0 || len(report.Skipped) > 0 {
		return fmt.Errorf("rebuild: missing %v, skipped %v", report.Missing, report.Skipped)
	}
	if err := w.open(ctx, nil); err != nil {
		return fmt.Errorf("after the rebuild: %w", err)
	}
	before := w.model
	var refused error
	for _, c := range slices.Backward(w.copies) {
		if c.ms != uint64(report.Copy.UnixMilli()) {
			continue
		}
		is, err := w.rebuilt(c.model, before, sealed)
		if err == nil {
			return w.adopt(ctx, before, is)
		}
		if refused = errors.Join(refused, err); c.sure {
			break // an older one was not to be taken
		}
	}
	return fmt.Errorf("after the rebuild from the copy of %v: %w", report.Copy, refused)
}

// adopt goes on with what the rebuild has made. Offsets of before name the same bytes
// or none.
func (w *world) adopt(ctx context.Context, before, is *model) error {
	w.model = is
	w.tell("lose, done")
	for n, now := range is.names {
		was := before.names[n]
		if was == nil || now.deleted || was.id != now.id || was.offsets == now.offsets {
			continue
		}
		p, err := w.store.Read(ctx, n, stream.At(was.offset(was.tail())))
		switch {
		case now.over(is.now) || now.unsure(is.now) && errors.Is(err, stream.ErrNotFound):
		case was.tail() > now.tail():
			if !errors.Is(err, stream.ErrOffsetOtherLife) {
				return fmt.Errorf("%s: an offset of a lost byte, %d of %d, is answered with %v", n, was.tail(), now.tail(), err)
			}
			w.tell("lose, bytes lost")
		case was.tail() >= now.earliest && err != nil:
			return fmt.Errorf("%s: an offset of before, %d of %d, is answered with %w", n, was.tail(), now.tail(), err)
		}
		p.Release()
	}
	w.known = make(map[stream.ID]*life)
	w.remember()
	if err := w.noteStrays(ctx); err != nil {
		return err
	}
	// Copies of before are of a store that has gone another way since.
	w.copies = nil
	if err := doBackup(ctx, w, Step{Do: "backup"}); err != nil {
		return err
	}
	return w.check(ctx, Step{})
}

// noteStrays notes the objects that the rebuilt catalog does not know: what was made
// after the copy and could not be attached. Nothing is removed on the word of a listing,
// so they stay.
func (w *world) noteStrays(ctx context.Context) error {
	v := w.hot.View()
	defer v.Close()
	return w.bucket.List(ctx, w.hot.ID()+"/", "", func(i blob.Info) error {
		state, err := v.Object(i.Key)
		if state == 0 && !w.isCopy(i.Key) {
			w.strays[i.Key] = true
		}
		return err
	})
}

// isCopy reports whether a key is of a copy of the catalog.
func (w *world) isCopy(key string) bool { return strings.HasPrefix(key, w.hot.ID()+"/catalog/") }

// sealedTo is up to where each stream is sealed: so much outlives the disk.
func (w *world) sealedTo() (map[stream.ID]uint64, error) {
	sealed := make(map[stream.ID]uint64)
	v := w.hot.View()
	defer v.Close()
	for n, is := range w.model.names {
		rec, err := v.Incarnation(is.id)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		sealed[is.id] = rec.Sealed
	}
	return sealed, nil
}

// remember keeps all bytes that each incarnation has had, also of those that are gone.
func (w *world) remember() {
	for _, is := range w.model.names {
		if old := w.known[is.id]; old == nil || old.tail() <= is.tail() {
			w.known[is.id] = is
		}
	}
}

// rebuilt holds what a rebuild has made to a copy and to what was known at the loss,
// and returns it as a model.
func (w *world) rebuilt(was, before *model, sealed map[stream.ID]uint64) (*model, error) {
	v := w.hot.View()
	defer v.Close()
	c, err := verify.Load(v.Reader(), verify.Options{})
	if err != nil {
		return nil, err
	}
	m := newModel(w.model.now, w.Page)
	m.buckets = make(map[string]bool)
	for b := range c.Buckets {
		m.buckets[b] = true
	}
	for b := range was.buckets {
		if !m.buckets[b] {
			return nil, fmt.Errorf("bucket %s is not there", b)
		}
	}
	for n, id := range c.Names {
		is, err := w.restored(c.Streams[id], id, was.names[n])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		if !is.deleted && !maps.Equal(c.Producers[id], is.producers) {
			return nil, fmt.Errorf("%s has producers %v, in the copy %v", n, c.Producers[id], is.producers)
		}
		m.names[n] = is
		m.forks[id] = int(c.Streams[id].Forks)
		now := before.names[n]
		if now != nil && now.id == id && now.earliest == is.earliest && !now.deleted && is.tail() < sealed[id] {
			return nil, fmt.Errorf("%s ends at %d, it was sealed up to %d", n, is.tail(), sealed[id])
		}
	}
	for n, is := range m.names {
		if f := c.Streams[is.id].Fork; f != nil {
			is.source = &life{id: f.Source, name: nameWithID(c, f.Source)}
			is.from, is.anchor, is.sub = f.From, f.Anchor, f.SubOffset
		}
		m.names[n] = is
	}
	for n, old := range was.names {
		if m.names[n] == nil && !old.over(was.now) {
			return nil, fmt.Errorf("%s is not there", n)
		}
	}
	return m, nil
}

func nameWithID(c *verify.Catalog, id stream.ID) stream.Name {
	for n, is := range c.Names {
		if is == id {
			return n
		}
	}
	return stream.Name{}
}

// restored is one stream after a rebuild: what it was in the copy, and perhaps bytes that
// were sealed since. One that the copy does not know was made after it.
func (w *world) restored(rec *verify.Stream, id stream.ID, old *life) (*life, error) {
	known := w.known[id]
	switch {
	case rec == nil:
		return nil, errors.New("it has no record")
	case known == nil:
		return nil, errors.New("it is there, out of nowhere")
	case rec.Tail > known.tail():
		return nil, fmt.Errorf("it ends at %d, it never had more than %d bytes", rec.Tail, known.tail())
	}
	is := *known
	is.content = known.content[:rec.Tail:rec.Tail]
	is.offsets, is.base, is.earliest, is.deleted = rec.Life, rec.Base, rec.Earliest, rec.Deleted
	is.closed, is.closer, is.seq, is.lifetime, is.asked = rec.Closed, rec.Closer, rec.Seq, rec.Lifetime, rec.Asked
	is.source, is.snapshot, is.producers = nil, nil, nil
	is.asleep, is.dead = 0, 0
	if l := is.lifetime; l.Sliding {
		is.asleep, is.dead = w.model.now, w.model.now+l.TTL*1000+max(l.TTL*1000/8, 1000)+1
	} else if !l.At.IsZero() {
		is.asleep = uint64(l.At.UnixMilli())
		is.dead = is.asleep
	}
	if old == nil || old.id != id {
		return &is, nil
	}
	is.snapshot, is.producers = old.snapshot, old.producers
	switch {
	case rec.Tail < old.tail() || !bytes.HasPrefix(is.content, old.content):
		return nil, fmt.Errorf("it ends at %d, at %d in the copy, or has other bytes", rec.Tail, old.tail())
	case old.deleted:
		is.snapshot = nil
	case rec.Deleted || rec.Earliest != old.earliest || rec.Closed != old.closed || !rec.Asked.Equal(old.asked):
		return nil, fmt.Errorf("it is %+v, in the copy earliest %d, closed %t", rec, old.earliest, old.closed)
	case (rec.Snapshot == nil) != (old.snapshot == nil) || rec.Snapshot != nil && rec.Snapshot.Position != old.snapshot.pos:
		return nil, errors.New("it has another snapshot than in the copy")
	case (rec.Seq == nil) != (old.seq == nil) || rec.Seq != nil && *rec.Seq != *old.seq:
		return nil, errors.New("it has another Stream-Seq than in the copy")
	}
	return &is, nil
}
