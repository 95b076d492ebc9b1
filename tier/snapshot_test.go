package tier_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/hot"
)

// publish makes a snapshot of a stream at a position.
func (r *rig) publish(id string, at uint64, body string) {
	r.t.Helper()
	r.must(r.tryPublish(id, at, body))
}

func (r *rig) tryPublish(id string, at uint64, body string) error {
	r.t.Helper()
	return r.PublishSnapshot(bg, tier.PublishRequest{
		Name: named(id), Offset: stream.Offset{Life: r.head(id).Tail.Life, Position: at},
		ContentType: "text/plain", Size: int64(len(body)), Body: strings.NewReader(body),
	})
}

// snapshot reads a stream's visible snapshot.
func (r *rig) snapshot(id string) (at uint64, body string) {
	r.t.Helper()
	latest, err := r.LatestSnapshot(bg, named(id))
	r.must(err)
	s, err := r.OpenSnapshot(bg, named(id), latest.Offset)
	r.must(err)
	defer s.Body.Close()
	b, err := io.ReadAll(s.Body)
	r.must(err)
	if s.SnapshotInfo != latest || s.Size != int64(len(b)) {
		r.t.Errorf("opened %+v of %d bytes, the latest is %+v", s.SnapshotInfo, len(b), latest)
	}
	return latest.Offset.Position, string(b)
}

// objects lists the keys of the blobs that hold a word.
func (r *rig) objects(word string) (keys []string) {
	r.t.Helper()
	r.must(r.blobs.List(bg, "", "", func(i blob.Info) error {
		if strings.Contains(i.Key, word) {
			keys = append(keys, i.Key)
		}
		return nil
	}))
	return keys
}

func (r *rig) object(key string) hot.ObjectState {
	r.t.Helper()
	v := r.hot.View()
	defer v.Close()
	s, err := v.Object(key)
	r.must(err)
	return s
}

func TestPublishChecksInOrder(t *testing.T) {
	r := newRig(t, tier.Options{SnapshotBytes: 4})
	r.create("a", json, `[1,22,333,4444]`) // boundaries 0 2 5 9 14
	r.cool("a", 9)
	r.publish("a", 2, "old")
	life := r.head("a").Tail.Life
	request := func(at uint64, size int64, body io.Reader) tier.PublishRequest {
		return tier.PublishRequest{Name: named("a"), Offset: stream.Offset{Life: life, Position: at}, Size: size, Body: body}
	}
	unread := iotest.ErrReader(errors.New("the body was read"))
	var trimmed *stream.TrimmedError
	for _, tt := range []struct {
		what string
		r    tier.PublishRequest
		want error // nil: a TrimmedError
	}{
		{"no stream", tier.PublishRequest{Name: named("b"), Size: 5, Body: unread}, stream.ErrNotFound},
		{"other life, past the tail, too large", tier.PublishRequest{Name: named("a"), Offset: stream.Offset{Life: life + 1, Position: 99}, Size: 5, Body: unread}, stream.ErrOffsetOtherLife},
		{"below the earliest, no boundary, too large", request(1, 5, unread), nil},
		{"the beginning, trimmed", tier.PublishRequest{Name: named("a"), Size: 5, Body: unread}, nil},
		{"past the tail, too large", request(15, 5, unread), stream.ErrSnapshotPastTail},
		{"no boundary, hot, too large", request(13, 5, unread), stream.ErrOffsetNotBoundary},
		{"no boundary, cold, too large", request(3, 5, unread), stream.ErrOffsetNotBoundary},
		{"declared too large", request(5, 5, unread), stream.ErrSnapshotTooLarge},
		{"too large without a declared size", request(5, -1, strings.NewReader("12345")), stream.ErrSnapshotTooLarge},
		{"body breaks off", request(5, 4, io.MultiReader(strings.NewReader("12"), iotest.ErrReader(io.ErrUnexpectedEOF))), io.ErrUnexpectedEOF},
	} {
		err := r.PublishSnapshot(bg, tt.r)
		if tt.want == nil && !errors.As(err, &trimmed) || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.want)
		}
	}
	if at, body := r.snapshot("a"); at != 2 || body != "old" || len(r.objects(".snapshot")) != 1 {
		t.Errorf("after refusals: snapshot %q at %d, objects %q", body, at, r.objects(".snapshot"))
	}
	for _, exact := range []tier.PublishRequest{request(5, 4, strings.NewReader("1234")), request(9, -1, strings.NewReader("1234")), request(14, 0, strings.NewReader(""))} {
		r.must(r.PublishSnapshot(bg, exact))
	}
	if at, body := r.snapshot("a"); at != 14 || body != "" {
		t.Errorf("snapshot %q at %d", body, at)
	}
}

func TestPublishMovesTheEarliestOffset(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(40)
	r.create("a", octets, content)
	if _, err := r.LatestSnapshot(bg, named("a")); !errors.Is(err, stream.ErrSnapshotNotFound) {
		t.Errorf("no snapshot yet: %v", err)
	}
	for _, at := range []uint64{0, 7, 7, 40} {
		r.publish("a", at, "snap")
		if i := r.head("a"); i.Earliest.Position != at || i.Snapshot == nil || i.Snapshot.Offset.Position != at {
			t.Errorf("published at %d: %+v", at, i)
		}
		r.readable("a", content, at)
	}
	r.append("a", "x")
	r.readable("a", content+"x", 40)
	r.trimmed(r.tryPublish("a", 39, ""), 40, "publish below the snapshot")
}

func TestSnapshotIsReplacedAtTheSameOffset(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "0123456789")
	r.publish("a", 5, "one")
	was := r.head("a").Snapshot
	old := r.objects(".snapshot")[0]
	r.publish("a", 5, "two")
	if _, body := r.snapshot("a"); body != "two" {
		t.Errorf("the snapshot is %q", body)
	}
	if is := r.head("a").Snapshot; is.Tag == was.Tag {
		t.Errorf("both blobs have the tag %s", is.Tag)
	}
	if s := r.object(old); s != hot.Retired {
		t.Errorf("the replaced blob is %v, want retired", s)
	}
}

func TestSnapshotsByOffset(t *testing.T) {
	r := newRig(t, tier.Options{})
	i := r.create("a", octets, "0123456789")
	r.publish("a", 5, "one")
	r.publish("a", 10, "two")
	at := func(life, pos uint64) stream.Offset { return stream.Offset{Life: life, Position: pos} }
	for _, o := range []stream.Offset{at(i.Tail.Life, 5), at(i.Tail.Life, 9), at(i.Tail.Life, 11), at(1, 10), at(0, 0)} {
		_, err := r.OpenSnapshot(bg, named("a"), o)
		r.is(err, stream.ErrSnapshotNotFound, "open at %v", o)
		r.is(r.DeleteSnapshot(bg, named("a"), o), stream.ErrSnapshotNotFound, "delete at %v", o)
	}
	r.is(r.DeleteSnapshot(bg, named("a"), at(i.Tail.Life, 10)), stream.ErrSnapshotLatest, "delete the latest")
	s, err := r.OpenSnapshot(bg, named("a"), at(i.Tail.Life, 10))
	if err != nil || !s.UpToDate || s.Closed {
		t.Fatalf("open: %+v, %v", s, err)
	}
	s.Body.Close()
	_, err = r.Append(bg, tier.AppendRequest{Name: named("a"), Close: true})
	r.must(err)
	if s, err = r.OpenSnapshot(bg, named("a"), at(i.Tail.Life, 10)); err != nil || !s.Closed {
		t.Fatalf("open of a closed stream's: %+v, %v", s, err)
	}
	s.Body.Close()
	// The all-zero offset names the snapshot at the beginning.
	r.create("b", octets, "0")
	r.publish("b", 0, "zero")
	if s, err = r.OpenSnapshot(bg, named("b"), stream.Offset{}); err != nil || s.UpToDate {
		t.Fatalf("open at zero: %+v, %v", s, err)
	}
	s.Body.Close()
}

func TestForkKeepsTheSnapshotThatItsSourceReplaces(t *testing.T) {
	r := newRig(t, tier.Options{})
	content := letters(30)
	r.create("source", octets, content)
	r.cool("source", 20)
	r.publish("source", 10, "old")
	blob := r.objects(".snapshot")[0]
	r.fork("at the snapshot", "source", 10)
	r.fork("after it", "source", 25)
	r.publish("source", 30, "new")
	for id, tail := range map[string]uint64{"at the snapshot": 10, "after it": 25} {
		if at, body := r.snapshot(id); at != 10 || body != "old" {
			t.Errorf("%s: snapshot %q at %d", id, body, at)
		}
		r.readable(id, content[:tail], 10)
	}
	r.readable("source", content, 30)
	// The fork's own does not touch its source's, and the blob lives while one names it.
	r.publish("after it", 20, "own")
	if at, body := r.snapshot("source"); at != 30 || body != "new" {
		t.Errorf("source: snapshot %q at %d", body, at)
	}
	if s := r.object(blob); s != hot.Live {
		t.Errorf("the shared blob is %v, want live", s)
	}
	r.must(r.Delete(bg, named("at the snapshot")))
	if s := r.object(blob); s != hot.Retired {
		t.Errorf("the blob that nothing names is %v, want retired", s)
	}
	r.readable("after it", content[:25], 20)
}

// Whatever becomes of the blob, a publication that failed changes nothing, and what
// it wrote is given to the sweep.
func TestPublishThatFailsLeavesNothingBehind(t *testing.T) {
	for what, f := range map[string]fault.Fault{
		"refused":    {Op: fault.Put, Kind: fault.Before},
		"reply lost": {Op: fault.Put, Kind: fault.After},
	} {
		r := newRig(t, tier.Options{})
		r.create("a", octets, "0123456789")
		r.faults.Script(f)
		r.is(r.tryPublish("a", 5, "snap"), stream.ErrColdUnavailable, "publish, %s", what)
		if i := r.head("a"); i.Earliest.Position != 0 || i.Snapshot != nil {
			t.Errorf("%s: %+v", what, i)
		}
		for _, key := range r.objects(".snapshot") {
			if s := r.object(key); s != hot.Retired {
				t.Errorf("%s: what was written is %v, want retired", what, s)
			}
		}
		r.publish("a", 5, "snap")
	}
}

// overtaken is a body during whose reading something happens.
type overtaken struct {
	io.Reader
	meanwhile func()
}

func (o *overtaken) Read(p []byte) (int, error) {
	if o.meanwhile != nil {
		o.meanwhile()
		o.meanwhile = nil
	}
	return o.Reader.Read(p)
}

func TestPublishIsOvertaken(t *testing.T) {
	for what, tt := range map[string]struct {
		meanwhile func(*rig)
		want      error // nil: a TrimmedError
	}{
		"deleted":              {func(r *rig) { r.must(r.Delete(bg, named("a"))) }, stream.ErrNotFound},
		"deleted and created":  {func(r *rig) { r.must(r.Delete(bg, named("a"))); r.create("a", octets, "successor") }, stream.ErrNotFound},
		"by a later snapshot":  {func(r *rig) { r.publish("a", 6, "later") }, nil},
		"by one at the offset": {func(r *rig) { r.publish("a", 5, "same") }, io.EOF},
	} {
		r := newRig(t, tier.Options{})
		r.create("a", octets, "0123456789")
		err := r.PublishSnapshot(bg, tier.PublishRequest{
			Name: named("a"), Offset: stream.Offset{Life: r.head("a").Tail.Life, Position: 5}, Size: -1,
			Body: &overtaken{strings.NewReader("mine"), func() { tt.meanwhile(r) }},
		})
		switch tt.want {
		case nil:
			r.trimmed(err, 6, "%s", what)
		case io.EOF: // accepted: the last one stays
			r.must(err)
			if _, body := r.snapshot("a"); body != "mine" {
				t.Errorf("%s: the snapshot is %q", what, body)
			}
		default:
			r.is(err, tt.want, "%s", what)
			if i, err := r.Head(bg, named("a")); err == nil && i.Snapshot != nil {
				t.Errorf("%s: the successor has a snapshot", what)
			}
		}
	}
}

func TestDamagedSnapshotIsNeverServedWhole(t *testing.T) {
	r := newRig(t, tier.Options{})
	r.create("a", octets, "0123456789")
	r.publish("a", 5, strings.Repeat("snap", 100))
	for what, f := range map[string]fault.Fault{
		"flipped": {Kind: fault.Flip, At: 399}, "short": {Kind: fault.Short, At: 399}, "cut": {Kind: fault.Cut, At: 399},
	} {
		f.Op = fault.Get
		r.faults.Script(f)
		s, err := r.OpenSnapshot(bg, named("a"), r.head("a").Snapshot.Offset)
		if err == nil {
			_, err = io.ReadAll(s.Body)
			s.Body.Close()
		}
		r.is(err, stream.ErrColdUnavailable, "%s blob", what)
	}
	r.faults.Script(fault.Fault{Op: fault.Get, Kind: fault.Before})
	_, err := r.OpenSnapshot(bg, named("a"), r.head("a").Snapshot.Offset)
	r.is(err, stream.ErrColdUnavailable, "open while the store is away")
}
