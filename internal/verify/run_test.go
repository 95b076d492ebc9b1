package verify_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/compactor"
	"firn/internal/blob"
	"firn/internal/blob/fault"
	"firn/internal/blob/mem"
	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/pkg/stream"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// archive is a store that has been written by the real parts and is closed: streams
// sealed twice, one of them evicted, one with a snapshot, one forked.
type archive struct {
	t     *testing.T
	disk  *vfs.MemFS
	blobs *mem.Store
	store string
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{t: t, disk: vfs.NewCrashableMem(), blobs: mem.New(mem.Options{})}
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h, err := hot.Open("hot", hot.Options{FS: a.disk, MemTableBytes: 1 << 20, Fatal: func(m string) { panic(m) }})
	must(err)
	a.store = h.ID()
	c, err := cold.Open(a.blobs, cold.Options{StoreID: h.ID()})
	must(err)
	s := tier.New(tier.Options{Hot: h, Cold: c, SpoolDir: t.TempDir()})
	e, err := segment.NewEncoder(segment.Options{FrameBytes: 64})
	must(err)
	k, err := compactor.New(compactor.Options{Hot: h, Cold: c, Encoder: e})
	must(err)
	ids := map[string]stream.ID{}
	for i, n := range []string{"json", "bytes", "away", "shot"} {
		contentType := []string{"application/json", "application/octet-stream"}[i%2]
		name := stream.Name{Bucket: stream.DefaultBucket, ID: n}
		info, _, err := s.Create(ctx, tier.CreateRequest{Name: name, ContentType: contentType})
		must(err)
		ids[n] = info.ID
		for j := range 2 {
			body := bytes.Repeat(fmt.Appendf(nil, `{"n":%d} `, j), 50)
			if i%2 == 0 {
				body = fmt.Appendf(nil, "[%s]", bytes.Join(bytes.Fields(body), []byte(",")))
			}
			_, err = s.Append(ctx, tier.AppendRequest{Name: name, ContentType: contentType, Body: body})
			must(err)
			must(k.SealStream(ctx, ids[n]))
		}
	}
	must(k.EvictStream(ctx, ids["away"]))
	_, _, err = s.Create(ctx, tier.CreateRequest{
		Name: stream.Name{Bucket: stream.DefaultBucket, ID: "fork"}, Fork: &tier.ForkRequest{Source: stream.Name{Bucket: stream.DefaultBucket, ID: "json"}},
	})
	must(err)
	shot, err := s.Head(ctx, stream.Name{Bucket: stream.DefaultBucket, ID: "shot"})
	must(err)
	must(s.PublishSnapshot(ctx, tier.PublishRequest{
		Name: shot.Name, Offset: stream.Offset{Life: shot.Tail.Life, Position: 100}, ContentType: "text/plain", Body: strings.NewReader("all of it"),
	}))
	c.Close()
	must(h.Close())
	return a
}

// run verifies the archive, with blobs in place of its own if they are given.
func (a *archive) run(o verify.RunOptions) *verify.Report {
	a.t.Helper()
	db, err := verify.Open("hot", a.disk)
	if err != nil {
		a.t.Fatal(err)
	}
	defer db.Close()
	if o.State == nil {
		o.State = func() (verify.Reader, func()) { return db, func() {} }
	}
	if o.Remote == nil {
		o.Remote = a.blobs
	}
	r, err := verify.Run(context.Background(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// object returns the first object whose key has all parts in it, and its bytes.
func (a *archive) object(parts ...string) (key string, data []byte) {
	a.t.Helper()
	err := a.blobs.List(context.Background(), "", "", func(i blob.Info) error {
		if key == "" && !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(i.Key, p) }) {
			key = i.Key
		}
		return nil
	})
	if err != nil || key == "" {
		a.t.Fatalf("no object with %q: %v", parts, err)
	}
	data, _, err = blob.ReadAll(context.Background(), a.blobs, key, 0, -1)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, data
}

func (a *archive) put(key string, data []byte) {
	a.t.Helper()
	if _, err := a.blobs.Put(context.Background(), key, bytes.NewReader(data), blob.PutOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// change writes to the closed hot tier.
func (a *archive) change(fn func(db *pebble.DB) error) {
	a.t.Helper()
	db, err := pebble.Open("hot", &pebble.Options{FS: a.disk, FormatMajorVersion: pebble.FormatNewest})
	if err == nil {
		err = errors.Join(fn(db), db.Close())
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestRunFindsNothingInAWholeStore(t *testing.T) {
	a := newArchive(t)
	r := a.run(verify.RunOptions{})
	if !r.Clean() || r.Unknown != 0 {
		t.Fatalf("%+v", r)
	}
	if r.Streams != 5 || r.Objects != 9 || r.Segments != 8 || r.Snapshots != 1 || r.ReadBytes < r.ObjectBytes {
		t.Errorf("%+v", r)
	}
	if s := a.run(verify.RunOptions{Structure: true}); !s.Clean() || s.Objects != r.Objects {
		t.Errorf("structure alone: %+v", s)
	}
}

func TestRunFindsDamagedObjects(t *testing.T) {
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 0x10
		return b
	}
	for _, c := range []struct {
		name   string
		damage func(a *archive)
		code   verify.Code
		says   string
		// structure: a look at the structure alone finds it too.
		structure bool
	}{
		{"lost segment", func(a *archive) { k, _ := a.object("stream=away"); a.must(a.blobs.Delete(context.Background(), k)) }, verify.CodeMissing, "default/away", true},
		{"lost snapshot", func(a *archive) { k, _ := a.object(".snapshot"); a.must(a.blobs.Delete(context.Background(), k)) }, verify.CodeMissing, ".snapshot", true},
		{"flipped bit in a frame", func(a *archive) { k, b := a.object("stream=bytes"); a.put(k, flip(b, 20)) }, verify.CodeDamaged, "frame 0", false},
		{"flipped bit in the descriptor", func(a *archive) { k, b := a.object("stream=bytes"); a.put(k, flip(b, len(b)-60)) }, verify.CodeDamaged, "corrupt", true},
		{"cut segment", func(a *archive) { k, b := a.object("stream=json"); a.put(k, b[:len(b)-1]) }, verify.CodeDamaged, "the catalog says", true},
		{"two segments swapped", func(a *archive) {
			k, b := a.object("stream=json", "-0000000000000000-")
			l, c := a.object("stream=away", "-0000000000000000-")
			a.put(k, c)
			a.put(l, b)
		}, verify.CodeDiffers, "it says nothing of the stream's bytes", true},
		{"flipped bit in a snapshot", func(a *archive) { k, b := a.object(".snapshot"); a.put(k, flip(b, 3)) }, verify.CodeDamaged, "checksum", false},
		{"cut snapshot", func(a *archive) { k, b := a.object(".snapshot"); a.put(k, b[1:]) }, verify.CodeDamaged, "the catalog says", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newArchive(t)
			c.damage(a)
			for _, structure := range []bool{true, false} {
				r := a.run(verify.RunOptions{Structure: structure})
				if structure && !c.structure {
					if !r.Clean() {
						t.Errorf("structure alone: %v", r.Problems)
					}
					continue
				}
				if r.Found == 0 || r.Problems[0].Code != c.code || !strings.Contains(r.Problems[0].String(), c.says) {
					t.Errorf("structure %t: found %q", structure, r.Problems)
				}
				if used := a.run(verify.RunOptions{Structure: structure, InUse: true}); used.Found != r.Found {
					t.Errorf("structure %t: found %q in use, %q at rest", structure, used.Problems, r.Problems)
				}
			}
		})
	}
}

func (a *archive) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// The two copies of bytes that are hot and sealed must be the same.
func TestRunComparesBothTiers(t *testing.T) {
	a := newArchive(t)
	a.change(func(db *pebble.DB) error {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{'d'}, UpperBound: []byte{'e'}})
		if err != nil {
			return err
		}
		defer it.Close()
		it.First()
		value := bytes.Clone(it.Value())
		value[15] ^= 1
		return db.Set(it.Key(), value, pebble.Sync)
	})
	r := a.run(verify.RunOptions{})
	if r.Found != 1 || r.Problems[0].Code != verify.CodeDiffers || !strings.Contains(r.Problems[0].Text, "hot tier") {
		t.Errorf("found %q", r.Problems)
	}
}

// What the catalog does not know is told, and is no problem.
func TestRunListsUnknownObjects(t *testing.T) {
	a := newArchive(t)
	a.put(a.store+"/bucket=default/stream=x/left.bin.zst", []byte("x"))
	a.put("of another store/x", []byte("x"))
	r := a.run(verify.RunOptions{})
	if !r.Clean() || r.Unknown != 1 || len(r.UnknownKeys) != 1 || !strings.HasSuffix(r.UnknownKeys[0], "left.bin.zst") {
		t.Errorf("%+v", r)
	}
}

// A bad transfer is no bad object, and no answer is no proof of anything.
func TestRunTellsTroubleOfTheStoreFromDamage(t *testing.T) {
	a := newArchive(t)
	f := fault.New(a.blobs)
	f.Script(fault.Fault{Op: fault.Get, Kind: fault.Flip, At: 30, Skip: 1}, fault.Fault{Op: fault.Get, Kind: fault.Before, Skip: 4})
	if r := a.run(verify.RunOptions{Remote: f, Concurrency: 1}); !r.Clean() {
		t.Errorf("after one bad transfer: %+v", r)
	}
	f.Clear()
	key, _ := a.object("stream=away")
	f.Script(fault.Fault{Op: fault.Get, Key: key, Kind: fault.Before, Times: fault.Always})
	if r := a.run(verify.RunOptions{Remote: f}); r.Clean() || r.Found != 0 || r.Unchecked != 1 {
		t.Errorf("without an answer: %+v", r)
	}
}

// An object that was given up while the run was under way is not missing.
func TestRunOfAStoreInUse(t *testing.T) {
	a := newArchive(t)
	key, _ := a.object("stream=away")
	a.must(a.blobs.Delete(context.Background(), key))
	before, err := verify.Open("hot", a.disk)
	a.must(err)
	a.must(before.Close())
	first := true
	present := a.disk.CrashClone(vfs.CrashCloneCfg{})
	now := &archive{t: t, disk: present}
	now.change(func(db *pebble.DB) error {
		value, closer, err := db.Get([]byte("o" + key))
		if err != nil {
			return err
		}
		defer closer.Close()
		retired := bytes.Clone(value)
		retired[1] = verify.Retired
		return db.Set([]byte("o"+key), retired, pebble.Sync)
	})
	old, err := verify.Open("hot", a.disk)
	a.must(err)
	defer old.Close()
	fresh, err := verify.Open("hot", present)
	a.must(err)
	defer fresh.Close()
	r, err := verify.Run(context.Background(), verify.RunOptions{Remote: a.blobs, InUse: true, State: func() (verify.Reader, func()) {
		if first {
			first = false
			return old, func() {}
		}
		return fresh, func() {}
	}})
	if err != nil || !r.Clean() {
		t.Errorf("%+v, %v", r, err)
	}
}

// The rate bounds what is read, and progress is told.
func TestRunAtARate(t *testing.T) {
	a := newArchive(t)
	start := time.Now()
	whole := a.run(verify.RunOptions{})
	if r := a.run(verify.RunOptions{Rate: int64(whole.ReadBytes) * 100}); !r.Clean() {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	db, err := verify.Open("hot", a.disk)
	a.must(err)
	defer db.Close()
	_, err = verify.Run(ctx, verify.RunOptions{Remote: a.blobs, Rate: 1, State: func() (verify.Reader, func()) { return db, func() {} }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled after %v: %v", time.Since(start), err)
	}
}
