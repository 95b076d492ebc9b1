package tier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

const (
	// readBytes bounds a page, frameBytes a frame: both small, so that few bytes have
	// many edges.
	readBytes  = 48
	frameBytes = 16
)

// rig is a store over a hot tier and objects in memory, with a clock that stands
// still. Bytes are sealed and given up when the test says so.
type rig struct {
	*tier.Store
	t       testing.TB
	hot     *hot.Store
	cold    *cold.Store
	blobs   blob.Store
	faults  *fault.Store
	encoder *segment.Encoder
	clock   atomic.Int64 // ms
	tick    atomic.Int64 // what each look at the clock adds to it
}

// newRig opens a store. Options but for the tiers are the caller's.
func newRig(t testing.TB, o tier.Options) *rig {
	t.Helper()
	m := mem.New(mem.Options{})
	r := &rig{t: t, blobs: m, faults: fault.New(m)}
	r.clock.Store(1_700_000_000_000)
	log := slog.New(slog.NewTextHandler(writer{t}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	var err error
	r.hot, err = hot.Open("hot", hot.Options{
		FS: disk.New().FS(), MemTableBytes: 1 << 20, Logger: log,
		Now: func() time.Time {
			tick := r.tick.Load()
			return time.UnixMilli(r.clock.Add(tick) - tick)
		},
		Fatal: func(m string) { panic(m) },
	})
	r.must(err)
	r.cold, err = cold.Open(r.faults, cold.Options{StoreID: r.hot.ID(), Logger: log, ReadAhead: -1})
	r.must(err)
	r.encoder, err = segment.NewEncoder(segment.Options{FrameBytes: frameBytes})
	r.must(err)
	if o.ReadBytes == 0 {
		o.ReadBytes = readBytes
	}
	o.Hot, o.Cold, o.Logger, o.SpoolDir = r.hot, r.cold, log, t.TempDir()
	r.Store = tier.New(o)
	t.Cleanup(func() {
		r.cold.Close()
		if err := r.hot.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// writer sends log lines to the test.
type writer struct{ t testing.TB }

func (w writer) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// is fails the test unless err is what was wanted; nil is no error.
func (r *rig) is(err, want error, what string, args ...any) {
	r.t.Helper()
	if !errors.Is(err, want) {
		r.t.Errorf("%s: %v, want %v", fmt.Sprintf(what, args...), err, want)
	}
}

// trimmed fails the test unless err refuses what is below an earliest position.
func (r *rig) trimmed(err error, earliest uint64, what string, args ...any) {
	r.t.Helper()
	var e *stream.TrimmedError
	if !errors.As(err, &e) || e.Earliest.Position != earliest {
		r.t.Errorf("%s: %v, want a TrimmedError with earliest %d", fmt.Sprintf(what, args...), err, earliest)
	}
}

const (
	octets = "application/octet-stream"
	json   = "application/json"
)

var bg = context.Background()

func named(id string) stream.Name { return stream.Name{Bucket: stream.DefaultBucket, ID: id} }

// create makes a stream with a first body, or none.
func (r *rig) create(id, contentType, body string) tier.Info {
	r.t.Helper()
	i, created, err := r.Create(bg, tier.CreateRequest{Name: named(id), ContentType: contentType, Body: []byte(body)})
	r.must(err)
	if !created {
		r.t.Fatalf("%s was there already", id)
	}
	return i
}

// fork makes a fork at a position of its source.
func (r *rig) fork(id, source string, at uint64) tier.Info {
	r.t.Helper()
	o := r.head(source).Tail
	o.Position = at
	i, created, err := r.Create(bg, tier.CreateRequest{Name: named(id), Fork: &tier.ForkRequest{Source: named(source), Offset: &o}})
	r.must(err)
	if !created {
		r.t.Fatalf("%s was there already", id)
	}
	return i
}

// append adds a body and returns the new tail.
func (r *rig) append(id, body string) uint64 {
	r.t.Helper()
	a, err := r.Append(bg, tier.AppendRequest{Name: named(id), ContentType: r.head(id).ContentType, Body: []byte(body)})
	r.must(err)
	return a.Tail.Position
}

func (r *rig) head(id string) tier.Info {
	r.t.Helper()
	i, err := r.Head(bg, named(id))
	r.must(err)
	return i
}

func (r *rig) record(id string) *hot.Record {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Stream(named(id))
	r.must(err)
	return rec
}

// seal moves a stream's sealed mark to a position, in one segment.
func (r *rig) seal(id string, to uint64) {
	r.t.Helper()
	r.must(r.trySeal(r.record(id).ID, to))
}

func (r *rig) trySeal(id stream.ID, to uint64) error {
	v := r.hot.View()
	defer v.Close()
	rec, err := v.Incarnation(id)
	if err != nil || rec.Sealed >= to {
		return err
	}
	w := r.encoder.NewWriter(segment.Meta{
		Store: r.hot.ID(), Name: rec.Name, Incarnation: rec.ID, Life: rec.Life, Mode: rec.Mode,
		ContentType: rec.ContentType, CreatedMs: rec.CreatedAt, From: rec.Sealed,
	})
	err = v.Values(rec.ID, rec.Sealed, to, func(ms uint64, payload []byte) error { return w.Append(payload, ms) })
	if err != nil {
		return err
	}
	s, err := w.Finish()
	if err != nil {
		return err
	}
	key := r.cold.SegmentKey(rec.Name, rec.ID, rec.Mode, rec.Sealed, to)
	s.Name(key)
	if err := r.hot.Intend(bg, key); err != nil {
		return err
	}
	size, err := r.cold.PutSegment(bg, key, s)
	if err != nil {
		return err
	}
	return r.hot.Seal(bg, hot.Seal{ID: rec.ID, Ref: s.Refs[0], Size: size})
}

// evict moves a stream's cut mark to a position.
func (r *rig) evict(id string, to uint64) {
	r.t.Helper()
	r.must(r.hot.Evict(bg, r.record(id).ID, to))
}

// cool seals and gives up a stream's bytes below a position.
func (r *rig) cool(id string, to uint64) {
	r.t.Helper()
	r.seal(id, to)
	r.evict(id, to)
}

// at is a start at a position of a stream.
func (r *rig) at(id string, pos uint64) stream.Start {
	r.t.Helper()
	o := r.head(id).Tail
	o.Position = pos
	return stream.At(o)
}

func (r *rig) page(id string, pos uint64) (tier.Page, error) {
	r.t.Helper()
	return r.Read(bg, named(id), r.at(id, pos))
}

// rest reads from a position to the tail, and checks each page on the way.
func (r *rig) rest(id string, pos uint64) string {
	r.t.Helper()
	var all []byte
	for {
		p, err := r.page(id, pos)
		if err != nil {
			r.t.Fatalf("read %s at %d: %v", id, pos, err)
		}
		n := uint64(len(p.Data))
		switch {
		case p.From.Position != pos || p.Next.Position != pos+n:
			r.t.Fatalf("read %s at %d: page [%d, %d) of %d bytes", id, pos, p.From.Position, p.Next.Position, n)
		case n == 0 && !p.UpToDate:
			r.t.Fatalf("read %s at %d: an empty page that does not reach the tail", id, pos)
		case p.UpToDate != (p.Next == p.Info.Tail) || p.Closed != (p.UpToDate && p.Info.Closed):
			r.t.Fatalf("read %s at %d: page to %v is up to date %v, closed %v; stream %+v", id, pos, p.Next, p.UpToDate, p.Closed, p.Info)
		case n > readBytes && (p.Info.Mode != stream.JSON || bytes.Count(p.Data, []byte{'\n'}) > 1):
			r.t.Fatalf("read %s at %d: page of %d bytes: %q", id, pos, n, p.Data)
		case n > 0 && p.Info.Mode == stream.JSON && p.Data[n-1] != '\n':
			r.t.Fatalf("read %s at %d: page ends inside a message: %q", id, pos, p.Data)
		case (n == 0) != (p.Tier == tier.None):
			r.t.Fatalf("read %s at %d: %d bytes from tier %v", id, pos, n, p.Tier)
		}
		all = append(all, p.Data...)
		p.Release()
		if pos += n; p.UpToDate {
			return string(all)
		}
	}
}

// readable fails the test unless each position of a stream can be read from, with
// the right bytes, or is refused where it lies inside a message.
func (r *rig) readable(id, want string, earliest uint64) {
	r.t.Helper()
	isJSON := r.head(id).Mode == stream.JSON
	for pos := range uint64(len(want) + 1) {
		inside := isJSON && pos > 0 && want[pos-1] != '\n'
		switch {
		case pos < earliest:
			_, err := r.page(id, pos)
			if pos > 0 || earliest > 0 {
				r.trimmed(err, earliest, "read %s at %d", id, pos)
			}
		case inside:
			_, err := r.page(id, pos)
			r.is(err, stream.ErrOffsetNotBoundary, "read %s at %d", id, pos)
		default:
			if got := r.rest(id, pos); got != want[pos:] {
				r.t.Errorf("read %s at %d: %q, want %q", id, pos, got, want[pos:])
			}
		}
	}
}

// letters are n different bytes.
func letters(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(byte('!' + i%90))
	}
	return b.String()
}
