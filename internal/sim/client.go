package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"

	"firn/pkg/stream"
	"firn/tier"
)

// excused reports whether a failure may be the trouble of the moment: then the request
// has changed nothing.
func (w *world) excused(s Step, err error) bool {
	trouble := len(s.Faults) > 0 || w.blobs.dead.Load()
	return trouble && (errors.Is(err, stream.ErrColdUnavailable) || errors.Is(err, context.DeadlineExceeded))
}

// answer compares a request's outcome with the model's. After a failure that is
// excused, the model goes back to what it was.
func (w *world) answer(s Step, was *model, got, want error) error {
	if same(got, want) {
		return nil
	}
	if got != nil && w.excused(s, got) {
		w.tell(s.Do + ", failed")
		w.model = was
		w.model.use(nameOf(s.Stream), false)
		return nil
	}
	return fmt.Errorf("%s was answered with error %v, want %v", s.Do, got, want)
}

// offset is where a step's At and Off are in a stream; some offset, if there is none.
func (w *world) offset(n stream.Name, s Step) stream.Offset {
	is := w.model.names[n]
	if is == nil {
		return stream.Offset{Life: 1, Position: uint64(s.At)}
	}
	return is.offset(is.place(s.At, s.Off))
}

func doCreate(ctx context.Context, w *world, s Step) error {
	r := tier.CreateRequest{Name: nameOf(s.Stream), ContentType: "text/plain", Lifetime: lifetime(s, w.model.now), Closed: s.Close}
	json := s.JSON
	if json {
		r.ContentType = "application/json"
	}
	if s.Source != "" {
		n := nameOf(s.Source)
		r.ContentType, r.Fork = "", &tier.ForkRequest{Source: n, SubOffset: uint64(s.Sub)}
		if src := w.model.names[n]; src != nil {
			json = src.json
			if s.At < 1000 || s.Off != 0 {
				o := w.offset(n, s)
				r.Fork.Offset = &o
			}
		}
	}
	var stored []byte
	r.Body, stored = s.payload(json)
	was := w.model.clone()
	created, want := w.model.create(r, stored)
	info, is, err := w.store.Create(ctx, r)
	if !same(err, want) || err != nil {
		return w.answer(s, was, err, want)
	}
	if is != created {
		return fmt.Errorf("%s made a stream: %t, want %t", s.Do, is, created)
	}
	if created {
		if s.Source != "" {
			w.tell("fork, done")
		}
		w.model.born(r.Name, info.ID, info.Tail.Life)
	}
	return w.model.names[r.Name].shown(info)
}

func doAppend(ctx context.Context, w *world, s Step) error {
	n := nameOf(s.Stream)
	r := tier.AppendRequest{Name: n, ContentType: "text/plain", Close: s.Close}
	is := w.model.names[n]
	if is != nil && is.json != s.JSON { // JSON asks for the wrong type
		r.ContentType = "application/json"
	}
	if s.Seq != "" {
		r.Seq = &s.Seq
	}
	if s.Producer != "" {
		r.Producer = is.claim(s)
	}
	var stored []byte
	r.Body, stored = s.payload(is != nil && is.json)
	was := w.model.clone()
	done, want := w.model.append(r, stored)
	got, err := w.store.Append(ctx, r)
	if err := w.answer(s, was, err, want); err != nil {
		return err
	}
	if err == nil && !reflect.DeepEqual(got, done) {
		return fmt.Errorf("append was answered with %+v, want %+v", got, done)
	}
	return nil
}

// claim is what a producer says in an append.
func (s *life) claim(step Step) *stream.Producer {
	p := &stream.Producer{ID: step.Producer}
	var is stream.ProducerState
	known := false
	if s != nil {
		is, known = s.producers[p.ID]
	}
	p.Epoch, p.Seq = is.Epoch, is.Seq
	if known && step.Try != "again" {
		p.Seq++
	}
	switch step.Try {
	case "gap":
		p.Seq++
	case "epoch":
		p.Epoch, p.Seq = p.Epoch+1, 0
	case "stale":
		p.Epoch = max(p.Epoch, 1) - 1
	}
	return p
}

func doDelete(ctx context.Context, w *world, s Step) error {
	was := w.model.clone()
	want := w.model.delete(nameOf(s.Stream))
	return w.answer(s, was, w.store.Delete(ctx, nameOf(s.Stream)), want)
}

func doBucket(ctx context.Context, w *world, s Step) error {
	was := w.model.clone()
	var want error
	if w.model.buckets[s.Bucket] {
		want = stream.ErrBucketExists
	}
	w.model.buckets[s.Bucket] = true
	return w.answer(s, was, w.store.CreateBucket(ctx, s.Bucket), want)
}

func doUnbucket(ctx context.Context, w *world, s Step) error {
	was := w.model.clone()
	want := w.model.dropBucket(s.Bucket)
	return w.answer(s, was, w.store.DeleteBucket(ctx, s.Bucket), want)
}

func doPublish(ctx context.Context, w *world, s Step) error {
	n, blob := nameOf(s.Stream), s.blob()
	o := w.offset(n, s)
	was := w.model.clone()
	want := w.model.publish(n, o.Position, blob)
	return w.answer(s, was, w.store.PublishSnapshot(ctx, tier.PublishRequest{
		Name: n, Offset: o, ContentType: "image/png", Size: int64(len(blob)), Body: bytes.NewReader(blob),
	}), want)
}

func doRead(ctx context.Context, w *world, s Step) error {
	_, err := w.read(ctx, s, w.offset(nameOf(s.Stream), s))
	return err
}

// doScan reads pages to the tail. One that fails for the trouble of the moment is tried
// again.
func doScan(ctx context.Context, w *world, s Step) error {
	is := w.model.names[nameOf(s.Stream)]
	if is == nil || is.deleted {
		return doRead(ctx, w, s)
	}
	pos := is.place(s.At, 0)
	for failures := 0; failures < 3 && pos < is.tail(); {
		next, err := w.read(ctx, s, is.offset(pos))
		if err != nil {
			return err
		}
		if next == 0 {
			failures++
			continue
		}
		pos = next
	}
	return nil
}

// read reads a page and compares it. It returns where the page
// ends, 0 if there is none.
func (w *world) read(ctx context.Context, s Step, at stream.Offset) (uint64, error) {
	n := nameOf(s.Stream)
	was := w.model.clone()
	is, want := w.model.find(n)
	if want == nil {
		switch {
		case at.Position > is.tail():
			want = stream.ErrOffsetPastTail
		case at.Position < is.earliest:
			want = &stream.TrimmedError{Earliest: is.offset(is.earliest)}
		case !is.boundary(at.Position):
			want = stream.ErrOffsetNotBoundary
		default:
			w.model.use(n, true)
		}
	}
	p, err := w.store.Read(ctx, n, stream.At(at))
	if err != nil || want != nil {
		return 0, w.answer(s, was, err, want)
	}
	defer p.Release()
	if err := is.page(p, at.Position); err != nil {
		return 0, fmt.Errorf("read %s at %d: %w", n, at.Position, err)
	}
	return p.Next.Position, nil
}

// page compares a page with the stream.
func (s *life) page(p tier.Page, at uint64) error {
	next := p.Next.Position
	switch {
	case p.From != s.offset(at) || p.Next.Life != s.offsets || next > s.tail() || next < at:
		return fmt.Errorf("page is [%v,%v), the tail %d", p.From, p.Next, s.tail())
	case next == at && at < s.tail():
		return errors.New("page is empty")
	case !bytes.Equal(p.Data, s.content[at:next]):
		return fmt.Errorf("page [%d,%d) has other bytes than were appended", at, next)
	case !s.boundary(next):
		return fmt.Errorf("page ends at %d, inside of a message", next)
	case p.UpToDate != (next == s.tail()) || p.Closed != (p.UpToDate && s.closed):
		return fmt.Errorf("page ends at %d of %d, up to date: %t, closed: %t", next, s.tail(), p.UpToDate, p.Closed)
	}
	return s.shown(p.Info)
}

// shown compares what is told of a stream.
func (s *life) shown(i tier.Info) error {
	switch {
	case i.ID != s.id || i.Tail != s.offset(s.tail()) || i.Earliest != s.offset(s.earliest) || i.Closed != s.closed || i.ContentType != s.contentType():
		return fmt.Errorf("%s is %s, tail %v, earliest %v, closed %t, %s; want %s, %v, %v, %t", i.Name, i.ID, i.Tail, i.Earliest, i.Closed, i.ContentType, s.id, s.offset(s.tail()), s.offset(s.earliest), s.closed)
	case (i.Snapshot == nil) != (s.snapshot == nil):
		return fmt.Errorf("%s has a snapshot: %t", i.Name, i.Snapshot != nil)
	case i.Snapshot != nil && (i.Snapshot.Offset != s.offset(s.snapshot.pos) || i.Snapshot.Size != int64(len(s.snapshot.blob))):
		return fmt.Errorf("%s has a snapshot at %v of %d bytes, want %d of %d", i.Name, i.Snapshot.Offset, i.Snapshot.Size, s.snapshot.pos, len(s.snapshot.blob))
	}
	return nil
}

func doBootstrap(ctx context.Context, w *world, s Step) error {
	n := nameOf(s.Stream)
	was := w.model.clone()
	is, want := w.model.find(n)
	if want == nil {
		w.model.use(n, true)
	}
	b, err := w.store.Bootstrap(ctx, n)
	if err != nil || want != nil {
		return w.answer(s, was, err, want)
	}
	defer b.Close()
	if err := is.bootstrap(b); err != nil {
		return fmt.Errorf("bootstrap of %s: %w", n, err)
	}
	w.tell("bootstrap, partial: " + b.Partial)
	if b.Partial == "cold" {
		d, err := w.store.Describe(ctx, n)
		if err == nil && d.Cut <= is.earliest && is.earliest >= is.base {
			err = fmt.Errorf("bootstrap of %s is partial, as if bytes below %d were cold", n, d.Cut)
		}
		return err
	}
	return nil
}

// bootstrap compares a bootstrap with the stream: nothing is skipped or repeated.
func (s *life) bootstrap(b *tier.Bootstrap) error {
	next := b.Next.Position
	switch {
	case b.Next.Life != s.offsets || next < s.earliest || next > s.tail():
		return fmt.Errorf("it ends at %v", b.Next)
	case !bytes.Equal(b.Updates, s.content[s.earliest:next]):
		return fmt.Errorf("updates [%d,%d) have other bytes than were appended", s.earliest, next)
	case b.Partial == "" && next != s.tail() || b.Partial == "cold" && next != s.earliest || b.Partial != "" && next == s.tail():
		return fmt.Errorf("it is partial: %q, and ends at %d of %d", b.Partial, next, s.tail())
	case b.UpToDate != (next == s.tail()) || b.Closed != (b.UpToDate && s.closed):
		return fmt.Errorf("it ends at %d of %d, up to date: %t, closed: %t", next, s.tail(), b.UpToDate, b.Closed)
	case (b.Snapshot == nil) != (s.snapshot == nil):
		return fmt.Errorf("it has a snapshot: %t", b.Snapshot != nil)
	}
	if b.Snapshot != nil {
		return s.shows(b.Snapshot)
	}
	return nil
}

// shows reads an open snapshot to its end.
func (s *life) shows(p *tier.Snapshot) error {
	blob, err := io.ReadAll(p.Body)
	switch {
	case err != nil:
		return err
	case p.Offset != s.offset(s.snapshot.pos) || !bytes.Equal(blob, s.snapshot.blob):
		return fmt.Errorf("snapshot at %v has %d bytes, or other ones than were published", p.Offset, len(blob))
	}
	return nil
}

func doSnapshot(ctx context.Context, w *world, s Step) error {
	n := nameOf(s.Stream)
	is, want := w.model.find(n)
	if want == nil && is.snapshot == nil {
		want = stream.ErrSnapshotNotFound
	}
	at := stream.Offset{Life: 1, Position: 1}
	if want == nil {
		at = is.offset(is.snapshot.pos)
	}
	p, err := w.store.OpenSnapshot(ctx, n, at)
	if err != nil || want != nil {
		return w.answer(s, w.model, err, want)
	}
	defer p.Body.Close()
	return is.shows(p)
}
