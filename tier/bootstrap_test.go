package tier_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
)

// bootstrapBytes is the limit in these tests.
const bootstrapBytes = 64

// boot takes a bootstrap and checks that it agrees with itself.
func (r *rig) boot(id string) *tier.Bootstrap {
	r.t.Helper()
	b, err := r.Bootstrap(bg, named(id))
	r.must(err)
	r.consistent(b)
	return b
}

func (r *rig) consistent(b *tier.Bootstrap) {
	r.t.Helper()
	start := b.Info.Earliest.Position
	if b.Snapshot != nil && b.Snapshot.Offset.Position != start {
		r.t.Errorf("snapshot at %d, updates from %d", b.Snapshot.Offset.Position, start)
	}
	if b.Next.Position != start+uint64(len(b.Updates)) || b.Next.Life != b.Info.Tail.Life {
		r.t.Errorf("%d bytes of updates from %d end at %v", len(b.Updates), start, b.Next)
	}
	if b.UpToDate != (b.Next == b.Info.Tail && b.Partial == "") || b.Closed != (b.UpToDate && b.Info.Closed) {
		r.t.Errorf("up to date %v, closed %v, partial %q at %v of %v", b.UpToDate, b.Closed, b.Partial, b.Next, b.Info.Tail)
	}
}

func TestBootstrapAtItsLimit(t *testing.T) {
	r := newRig(t, tier.Options{BootstrapBytes: bootstrapBytes})
	ndjson := func(sizes ...int) string { // messages of these sizes
		var b strings.Builder
		for _, n := range sizes {
			if n == 1 {
				b.WriteString("1\n")
			} else {
				b.WriteString(`"` + strings.Repeat("x", n-2) + `"` + "\n")
			}
		}
		return b.String()
	}
	for _, tt := range []struct {
		what, contentType, stored string
		want                      int // bytes of updates
		partial                   string
	}{
		{"nothing", octets, "", 0, ""},
		{"bytes, one below", octets, letters(bootstrapBytes - 1), bootstrapBytes - 1, ""},
		{"bytes, exact", octets, letters(bootstrapBytes), bootstrapBytes, ""},
		{"bytes, one above", octets, letters(bootstrapBytes + 1), 0, "size"},
		{"JSON, nothing", json, "", 0, ""},
		{"JSON, one below", json, ndjson(31, 32), 65, ""},
		{"JSON, exact", json, ndjson(32, 32), 66, ""},
		{"JSON, one above", json, ndjson(32, 33), 33, "size"},
		{"JSON, exact and one more", json, ndjson(32, 32, 1), 66, "size"},
		{"JSON, first message exact", json, ndjson(64), 65, ""},
		{"JSON, first message too large", json, ndjson(65), 0, "size"},
		{"JSON, first message too large, small ones after it", json, ndjson(65, 1, 1), 0, "size"},
		{"JSON, half LFs, exact", json, ndjson(slices.Repeat([]int{1}, 64)...), 128, ""},
		{"JSON, half LFs, one above", json, ndjson(slices.Repeat([]int{1}, 65)...), 128, "size"},
	} {
		for _, chunked := range []bool{false, true} {
			id := fmt.Sprint(tt.what, chunked)
			r.create(id, tt.contentType, "")
			body := tt.stored
			switch {
			case body == "":
			case tt.contentType == octets && chunked:
				for i := range body {
					r.append(id, body[i:i+1])
				}
			case tt.contentType == octets:
				r.append(id, body)
			case chunked:
				for m := range strings.Lines(body) {
					r.append(id, m)
				}
			default:
				r.append(id, "["+strings.ReplaceAll(strings.TrimSpace(body), "\n", ",")+"]")
			}
			_, err := r.Append(bg, tier.AppendRequest{Name: named(id), Close: true})
			r.must(err)
			b := r.boot(id)
			if string(b.Updates) != tt.stored[:tt.want] || b.Partial != tt.partial || b.Snapshot != nil {
				t.Errorf("%s, chunked %v: %d bytes, partial %q; want %d, %q", tt.what, chunked, len(b.Updates), b.Partial, tt.want, tt.partial)
			}
			// From where it stopped, ordinary reads give the rest.
			if got := r.rest(id, b.Next.Position); string(b.Updates)+got != tt.stored {
				t.Errorf("%s, chunked %v: reading on gives %q", tt.what, chunked, got)
			}
			b.Close()
			b.Close()
		}
	}
}

func TestBootstrapServesNoColdByte(t *testing.T) {
	r := newRig(t, tier.Options{BootstrapBytes: bootstrapBytes})
	content := letters(40)
	for _, tt := range []struct {
		snapshot, cut, sealed uint64
		partial               string
	}{
		{0, 0, 40, ""}, // sealed, but the hot copy is kept
		{0, 1, 40, "cold"},
		{0, 40, 40, "cold"},
		{20, 19, 40, ""},
		{20, 20, 40, ""},
		{20, 21, 40, "cold"},
		{40, 40, 40, ""}, // nothing after the snapshot
	} {
		id := fmt.Sprint(tt)
		r.create(id, octets, content)
		r.seal(id, tt.sealed)
		r.evict(id, tt.cut)
		if tt.snapshot > 0 {
			r.publish(id, tt.snapshot, "snap")
		}
		gets := r.faults.Calls(fault.Get)
		b := r.boot(id)
		want := content[tt.snapshot:]
		if tt.partial != "" {
			want = ""
		}
		if string(b.Updates) != want || b.Partial != tt.partial || (b.Snapshot != nil) != (tt.snapshot > 0) {
			t.Errorf("%+v: updates %q, partial %q; want %q", tt, b.Updates, b.Partial, want)
		}
		if b.Snapshot != nil {
			if body, err := io.ReadAll(b.Snapshot.Body); err != nil || string(body) != "snap" {
				t.Errorf("%+v: snapshot %q, %v", tt, body, err)
			}
			gets++ // for the snapshot
		}
		if n := r.faults.Calls(fault.Get); n != gets {
			t.Errorf("%+v: %d GETs of segments", tt, n-gets)
		}
		b.Close()
	}
}

func TestBootstrapOfForks(t *testing.T) {
	r := newRig(t, tier.Options{BootstrapBytes: bootstrapBytes})
	r.create("source", octets, "0123456789")
	r.publish("source", 2, "snap")
	r.fork("fork", "source", 8)
	r.append("fork", "own")
	b := r.boot("fork")
	if string(b.Updates) != "234567own" || b.Snapshot == nil {
		t.Errorf("updates %q, snapshot %v", b.Updates, b.Snapshot)
	}
	b.Close()
	r.cool("source", 3)
	if b = r.boot("fork"); b.Partial != "cold" || b.Next.Position != 2 {
		t.Errorf("with a cold byte of the source: partial %q, next %v", b.Partial, b.Next)
	}
	b.Close()
}

func TestBootstrapWhileTheSnapshotIsAway(t *testing.T) {
	r := newRig(t, tier.Options{BootstrapBytes: bootstrapBytes, BootstrapMemory: 1})
	r.create("a", octets, "0123456789")
	r.publish("a", 5, "snap")
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before, Times: 3})
	for range 3 { // each gives its memory back
		_, err := r.Bootstrap(bg, named("a"))
		r.is(err, stream.ErrColdUnavailable, "bootstrap")
	}
	r.boot("a").Close()
	_, err := r.Bootstrap(bg, named("b"))
	r.is(err, stream.ErrNotFound, "no stream")
}

func TestBootstrapsAreBoundedInMemory(t *testing.T) {
	// Room for two streams of twice the limit.
	r := newRig(t, tier.Options{BootstrapBytes: bootstrapBytes, BootstrapMemory: 4 * bootstrapBytes})
	r.create("a", octets, letters(1000))
	r.create("empty", octets, "")
	first, second := r.boot("a"), r.boot("a")
	defer second.Close()
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	_, err := r.Bootstrap(ctx, named("a"))
	r.is(err, context.DeadlineExceeded, "a third one")
	r.boot("empty").Close() // needs no memory
	first.Close()
	r.boot("a").Close()
}

// While bytes are appended, sealed and given up and snapshots published, every
// bootstrap is the stream from its start to its end without a gap.
func TestBootstrapIsConsistentWhileEverythingMoves(t *testing.T) {
	r := newRig(t, tier.Options{BootstrapBytes: 500, ReadBytes: 1 << 20})
	r.create("a", json, "")
	const messages = 400
	var content strings.Builder
	for i := range messages {
		fmt.Fprintf(&content, "%d\n", 1000+i)
	}
	want := content.String()
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // writer
		defer close(done)
		for i := range messages {
			r.append("a", fmt.Sprint(1000+i))
		}
	})
	mover := func(step func(tail uint64)) {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					step(r.record("a").Tail)
				}
			}
		})
	}
	id := r.record("a").ID
	mover(func(tail uint64) {
		_ = r.trySeal(id, tail) // a snapshot may have moved the mark meanwhile
		_ = r.hot.Evict(bg, id, r.record("a").Sealed)
	})
	mover(func(tail uint64) {
		if tail > 300 {
			_ = r.tryPublish("a", tail-300, fmt.Sprint(tail-300)) // or it is below the last one
		}
	})
	counts := map[string]int{}
	for open := true; open; {
		select {
		case <-done:
			open = false
		default:
		}
		b, err := r.Bootstrap(bg, named("a"))
		if err != nil {
			t.Errorf("bootstrap: %v", err)
			break
		}
		r.consistent(b)
		start, next := b.Info.Earliest.Position, b.Next.Position
		if !bytes.Equal(b.Updates, []byte(want[start:next])) {
			t.Errorf("updates of [%d, %d) are %q", start, next, b.Updates)
		}
		if b.Snapshot != nil {
			if body, err := io.ReadAll(b.Snapshot.Body); err != nil || string(body) != fmt.Sprint(start) {
				t.Errorf("snapshot at %d is %q, %v", start, body, err)
			}
		}
		p, err := r.Read(bg, named("a"), stream.At(b.Next))
		var trimmed *stream.TrimmedError // a snapshot has overtaken us
		switch {
		case err == nil:
			if !strings.HasPrefix(want[next:], string(p.Data)) {
				t.Errorf("reading on at %d gave %q", next, p.Data)
			}
			p.Release()
		case !errors.As(err, &trimmed):
			t.Errorf("reading on at %d: %v", next, err)
		}
		counts[b.Partial]++
		b.Close()
	}
	all.Wait()
	if got := r.whole("a"); !strings.HasSuffix(want, got) {
		t.Errorf("in the end the stream is %q", got)
	}
	t.Logf("bootstraps by how they ended: %v", counts)
}

// whole reads what a stream retains, in pages of any size.
func (r *rig) whole(id string) string {
	r.t.Helper()
	var all []byte
	for pos := r.head(id).Earliest.Position; ; {
		p, err := r.page(id, pos)
		r.must(err)
		all = append(all, p.Data...)
		pos = p.Next.Position
		p.Release()
		if p.UpToDate {
			return string(all)
		}
	}
}
