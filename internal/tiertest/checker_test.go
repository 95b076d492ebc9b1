package tiertest_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/tiertest"
	"firn/internal/verify"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// kinds are the first bytes of all keys.
const kinds = "mbnspdgftoqurhx"

// furnished returns the disk of a store that has keys of every kind.
func furnished(t *testing.T) *vfs.MemFS {
	t.Helper()
	for seed := range uint64(500) {
		var disk vfs.FS
		o := tiertest.Options{Seed: seed, Steps: 80, Finished: func(fs vfs.FS) { disk = fs }}
		if err := tiertest.Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		db := openDB(t, disk)
		missing := strings.ContainsFunc(kinds, func(kind rune) bool { return first(t, db, byte(kind)) == nil })
		c := load(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if !missing && sealedStream(c) != 0 && trimmedStream(c) != 0 {
			return disk.(*vfs.MemFS)
		}
	}
	t.Fatal("no run ended with keys of every kind")
	return nil
}

func openDB(t *testing.T, fs vfs.FS) *pebble.DB {
	t.Helper()
	db, err := pebble.Open(tiertest.Dir, &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatNewest, Logger: testLogger{t}})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

type testLogger struct{ t *testing.T }

func (testLogger) Infof(string, ...any)                {}
func (l testLogger) Errorf(format string, args ...any) { l.t.Errorf(format, args...) }
func (l testLogger) Fatalf(format string, args ...any) { l.t.Fatalf(format, args...) }

func load(t *testing.T, db *pebble.DB) *verify.Catalog {
	t.Helper()
	c, err := verify.Load(db, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// first returns the first key of a kind, nil if there is none.
func first(t *testing.T, db *pebble.DB, kind byte) []byte {
	return firstOf(t, db, kind, nil)
}

// firstOf returns the first key of a kind that contains text.
func firstOf(t *testing.T, db *pebble.DB, kind byte, text []byte) []byte {
	t.Helper()
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		if bytes.Contains(it.Key(), text) {
			return bytes.Clone(it.Key())
		}
	}
	return nil
}

// sealedStream returns a stream with unsealed bytes whose floor is its base.
func sealedStream(c *verify.Catalog) stream.ID {
	for _, id := range slices.Sorted(maps.Keys(c.Streams)) {
		if s := c.Streams[id]; s.Sealed < s.Tail && s.Sealed > s.Floor && s.Cut < s.Sealed {
			return id
		}
	}
	return 0
}

func set(t *testing.T, db *pebble.DB, key, value []byte) {
	t.Helper()
	if err := db.Set(key, value, pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func value(t *testing.T, db *pebble.DB, key []byte) []byte {
	t.Helper()
	v, closer, err := db.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	return bytes.Clone(v)
}

// trimmedStream returns a stream with a segment to let go of.
func trimmedStream(c *verify.Catalog) stream.ID {
	for _, id := range slices.Sorted(maps.Keys(c.Trim)) {
		s := c.Streams[id]
		if refs := c.Segments[id]; len(refs) > 0 && (s == nil || slices.ContainsFunc(refs, func(r segment.Ref) bool { return r.To <= s.Floor })) {
			return id
		}
	}
	return 0
}

// loseTrim deletes the index entry of a stream with a segment to let go of.
func loseTrim(t *testing.T, db *pebble.DB, c *verify.Catalog) {
	if err := db.Delete(binary.BigEndian.AppendUint64([]byte{'t'}, uint64(trimmedStream(c))), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

// lose deletes the first key of a kind.
func lose(kind byte) func(*testing.T, *pebble.DB, *verify.Catalog) {
	return func(t *testing.T, db *pebble.DB, _ *verify.Catalog) {
		if err := db.Delete(first(t, db, kind), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
}

// loseOf deletes the first key of a kind that belongs to a stream which is alive.
func loseOf(kind byte) func(*testing.T, *pebble.DB, *verify.Catalog) {
	return func(t *testing.T, db *pebble.DB, c *verify.Catalog) {
		id := binary.BigEndian.AppendUint64(nil, uint64(sealedStream(c)))
		if err := db.Delete(firstOf(t, db, kind, id), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
	}
}

// remark gives a stream other marks.
func remark(change func(*verify.Stream)) func(*testing.T, *pebble.DB, *verify.Catalog) {
	marks := func(s *verify.Stream) (b []byte) {
		for _, v := range []uint64{s.Base, s.Floor, s.Cut, s.Sealed, s.Tail, s.Earliest, s.Need} {
			b = binary.AppendUvarint(b, v)
		}
		return b
	}
	return func(t *testing.T, db *pebble.DB, c *verify.Catalog) {
		id := sealedStream(c)
		is := *c.Streams[id]
		change(&is)
		key := binary.BigEndian.AppendUint64([]byte{'s'}, uint64(id))
		was := value(t, db, key)
		now := bytes.Replace(was, marks(c.Streams[id]), marks(&is), 1)
		if bytes.Equal(was, now) {
			t.Fatal("record has other marks than expected")
		}
		set(t, db, key, now)
	}
}

// cutShort takes the last byte off the first value of a kind.
func cutShort(kind byte) func(*testing.T, *pebble.DB, *verify.Catalog) {
	return func(t *testing.T, db *pebble.DB, _ *verify.Catalog) {
		key := first(t, db, kind)
		v := value(t, db, key)
		set(t, db, key, v[:len(v)-1])
	}
}

// stray adds a key that belongs to nothing.
func stray(key, value string) func(*testing.T, *pebble.DB, *verify.Catalog) {
	return func(t *testing.T, db *pebble.DB, _ *verify.Catalog) { set(t, db, []byte(key), []byte(value)) }
}

func TestCheckerCatches(t *testing.T) {
	disk := furnished(t)
	for name, c := range map[string]struct {
		damage func(*testing.T, *pebble.DB, *verify.Catalog)
		want   string
	}{
		"nothing":                   {func(*testing.T, *pebble.DB, *verify.Catalog) {}, ""},
		"lost bucket":               {lose('b'), "which has no record"},
		"lost name":                 {lose('n'), "which names another or none"},
		"lost stream":               {lose('s'), "but has no record of that name"},
		"lost producer":             {lose('p'), "producers, has"},
		"lost data":                 {lose('d'), "data"},
		"lost segment":              {loseOf('g'), "segments, has"},
		"lost fork link":            {lose('f'), "has no fork link"},
		"lost trim entry":           {loseTrim, "not in that index"},
		"lost object":               {lose('o'), "object"},
		"lost queue entry":          {lose('q'), "not in the queue"},
		"lost unsealed entry":       {lose('u'), "has unsealed bytes since"},
		"lost ready entry":          {lose('r'), "is ready to seal: true; in that index: false"},
		"lost held entry":           {loseOf('h'), "is in the eviction order: false"},
		"lost expiry entry":         {lose('x'), "expires at"},
		"evicted past sealed":       {remark(func(s *verify.Stream) { s.Cut = s.Tail }), "marks are out of order"},
		"evicted without a copy":    {remark(func(s *verify.Stream) { s.Cut, s.Sealed = s.Tail, s.Tail }), "segments end at"},
		"sealed moved back":         {remark(func(s *verify.Stream) { s.Sealed = s.Floor }), "is outside of what is sealed"},
		"tail moved on":             {remark(func(s *verify.Stream) { s.Tail++ }), "data ends at"},
		"floor not raised":          {remark(func(s *verify.Stream) { s.Need++ }), "needs bytes from"},
		"earliest past the tail":    {remark(func(s *verify.Stream) { s.Earliest = s.Tail + 1 }), "is past the tail"},
		"data cut short":            {cutShort('d'), "data"},
		"record cut short":          {cutShort('s'), "does not have the form"},
		"segment cut short":         {cutShort('g'), "does not have the form"},
		"data of nothing":           {stray("d\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\x00\x00\x00\x00\x00\x00\x00\x09x"), "data values are left"},
		"producer of nothing":       {stray("p\x00\x00\x00\x00\x00\x00\x00\x07me", "\x01\x00\x00"), "producers are left"},
		"fork link of nothing":      {stray("f\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08", ""), "is no fork of it"},
		"ready entry of nothing":    {stray("r\x00\x00\x00\x00\x00\x00\x00\x07", ""), "index of ready streams"},
		"unsealed entry of nothing": {stray("u\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08", ""), "index of unsealed streams"},
		"expiry entry of nothing":   {stray("x\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08", ""), "index of expiry streams"},
		"held entry of nothing":     {stray("h\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x01"), "eviction order has"},
		"queue entry of nothing":    {stray("q\x00\x00\x00\x00\x00\x00\x00\x07object", ""), "queue has"},
		"live object of nothing":    {stray("oobject", "\x01\x02\x01\x01\x00"), "is named"},
		"unknown kind":              {stray("?", ""), "does not have the form"},
		"other format":              {stray("mformat", "firn-hot-0"), "format is"},
		"other counts":              {stray("mstate", "\x01\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00"), "its streams add up to"},
		"no identity":               {stray("mstore", ""), "no identity"},
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t, disk.CrashClone(vfs.CrashCloneCfg{}))
			defer db.Close()
			c.damage(t, db, load(t, db))
			var texts []string
			for _, p := range load(t, db).Check() {
				texts = append(texts, p.String())
			}
			switch all := strings.Join(texts, "\n"); {
			case c.want == "" && all != "":
				t.Fatalf("an undamaged store has problems:\n%s", all)
			case !strings.Contains(all, c.want):
				t.Fatalf("want a problem with %q, got:\n%s", c.want, all)
			}
		})
	}
}
