// Package blobtest is the suite that every blob.Store passes, wrapped or not. What
// blob.Store promises is checked here once; tests beside an implementation check
// only what is its own.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"firn/internal/blob"
)

// Options describes what the store under test cannot do. The zero value asks for
// everything.
type Options struct {
	// PlainKeys leaves out keys that a server on a POSIX file system refuses: one
	// that is a folder of another, empty or dotted segments, segments of more
	// than 255 bytes.
	PlainKeys bool
	// AfterKeys leaves out listings after something that is not a key.
	AfterKeys bool
	// Large is the size of the largest object, in bytes; default 1 MiB and a bit.
	Large int
}

// Run tests the store that open returns. open is called once a subtest and must
// return an empty store each time; it releases it with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) blob.Store, opts Options) {
	if opts.Large == 0 {
		opts.Large = 1<<20 + 17
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s blob.Store, opts Options)
	}{
		{"PutGet", testPutGet},
		{"Ranges", testRanges},
		{"EmptyObject", testEmptyObject},
		{"NotFound", testNotFound},
		{"IfNoneMatch", testIfNoneMatch},
		{"IfMatch", testIfMatch},
		{"IfNoneMatchRace", testIfNoneMatchRace},
		{"IfMatchRace", testIfMatchRace},
		{"Overwrite", testOverwrite},
		{"Delete", testDelete},
		{"DeleteMany", testDeleteMany},
		{"OddKeys", testOddKeys},
		{"BadKeys", testBadKeys},
		{"List", testList},
		{"ListEnds", testListEnds},
		{"Canceled", testCanceled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t), opts) })
	}
}

func testPutGet(t *testing.T, s blob.Store, opts Options) {
	for _, size := range []int{1, 2, 4096, 65537, opts.Large} {
		key := fmt.Sprintf("size/%d.bin", size)
		data := Random(uint64(size), size)
		put, err := s.Put(t.Context(), key, bytes.NewReader(data), blob.PutOptions{})
		noError(t, err)
		if put.Key != key || put.Size != int64(size) || put.ETag == "" {
			t.Errorf("put %s: info %+v", key, put)
		}
		got, info := read(t, s, key, 0, -1)
		if sha256.Sum256(got) != sha256.Sum256(data) {
			t.Errorf("%s: contents differ", key)
		}
		if info.Key != key || info.Size != int64(size) || info.ETag != put.ETag || info.Modified.IsZero() {
			t.Errorf("get %s: info %+v, put said %+v", key, info, put)
		}
	}
}

func testRanges(t *testing.T, s blob.Store, opts Options) {
	data := Random(1, 1000)
	put(t, s, "range.bin", data)
	for _, c := range []struct {
		off, n     int64
		start, end int // of data; -1: ErrRange
	}{
		{0, 1, 0, 1},
		{0, 1000, 0, 1000},
		{0, -1, 0, 1000},
		{10, 20, 10, 30},
		{999, 1, 999, 1000},
		{999, -1, 999, 1000},
		{500, -1, 500, 1000},
		{-1, -1, 999, 1000},
		{-1000, -1, 0, 1000},
		{-1001, -1, 0, 1000},
		{-1 << 40, -1, 0, 1000},
		{0, 0, 0, 0},
		{0, 1001, -1, 0},
		{999, 2, -1, 0},
		{1000, 1, -1, 0},
		{1000, -1, -1, 0},
		{5000, 10, -1, 0},
		{5, 0, -1, 0},
		{-5, 2, -1, 0},
		{-5, 0, -1, 0},
		{1 << 62, 1 << 62, -1, 0},
	} {
		if c.start < 0 {
			r, _, err := s.Get(t.Context(), "range.bin", c.off, c.n)
			if !errors.Is(err, blob.ErrRange) {
				t.Errorf("get [%d, +%d): error %v, want ErrRange", c.off, c.n, err)
			}
			if err == nil {
				r.Close()
			}
			continue
		}
		got, info := read(t, s, "range.bin", c.off, c.n)
		if !bytes.Equal(got, data[c.start:c.end]) {
			t.Errorf("get [%d, +%d): %d bytes that are not [%d, %d)", c.off, c.n, len(got), c.start, c.end)
		}
		if info.Size != 1000 {
			t.Errorf("get [%d, +%d): size %d, want that of the object", c.off, c.n, info.Size)
		}
	}
}

func testEmptyObject(t *testing.T, s blob.Store, _ Options) {
	put(t, s, "empty.bin", nil)
	for _, c := range [][2]int64{{0, -1}, {0, 0}, {-7, -1}} {
		if got, info := read(t, s, "empty.bin", c[0], c[1]); len(got) != 0 || info.Size != 0 {
			t.Errorf("get [%d, +%d): %d bytes, info %+v", c[0], c[1], len(got), info)
		}
	}
	for _, c := range [][2]int64{{0, 1}, {1, -1}} {
		_, _, err := s.Get(t.Context(), "empty.bin", c[0], c[1])
		wantError(t, err, blob.ErrRange)
	}
}

func testNotFound(t *testing.T, s blob.Store, _ Options) {
	put(t, s, "there/a.bin", []byte("a"))
	for _, c := range [][2]int64{{0, -1}, {0, 0}, {10, 5}, {-5, -1}} {
		for _, key := range []string{"absent.bin", "there/b.bin", "there", "there/a.bi", "there/a.bin2"} {
			_, _, err := s.Get(t.Context(), key, c[0], c[1])
			wantError(t, err, blob.ErrNotFound)
		}
	}
}

func testIfNoneMatch(t *testing.T, s blob.Store, _ Options) {
	first := blob.PutOptions{IfNoneMatch: true}
	_, err := s.Put(t.Context(), "once.bin", strings.NewReader("one"), first)
	noError(t, err)
	_, err = s.Put(t.Context(), "once.bin", strings.NewReader("two"), first)
	wantError(t, err, blob.ErrExists)
	if got, _ := read(t, s, "once.bin", 0, -1); string(got) != "one" {
		t.Errorf("a refused put changed the object to %q", got)
	}
	noError(t, s.Delete(t.Context(), "once.bin"))
	_, err = s.Put(t.Context(), "once.bin", strings.NewReader("three"), first)
	noError(t, err)
}

func testIfMatch(t *testing.T, s blob.Store, _ Options) {
	_, err := s.Put(t.Context(), "cas.bin", strings.NewReader("0"), blob.PutOptions{IfMatch: "absent"})
	wantError(t, err, blob.ErrPrecondition)
	_, _, err = s.Get(t.Context(), "cas.bin", 0, 0)
	wantError(t, err, blob.ErrNotFound)

	one := put(t, s, "cas.bin", []byte("1"))
	two, err := s.Put(t.Context(), "cas.bin", strings.NewReader("2"), blob.PutOptions{IfMatch: one.ETag})
	noError(t, err)
	_, err = s.Put(t.Context(), "cas.bin", strings.NewReader("3"), blob.PutOptions{IfMatch: one.ETag})
	wantError(t, err, blob.ErrPrecondition)
	got, info := read(t, s, "cas.bin", 0, -1)
	if string(got) != "2" || info.ETag != two.ETag || one.ETag == two.ETag {
		t.Errorf("object is %q with ETag %q, puts gave %q and %q", got, info.ETag, one.ETag, two.ETag)
	}
	_, err = s.Put(t.Context(), "cas.bin", strings.NewReader("4"), blob.PutOptions{IfMatch: one.ETag, IfNoneMatch: true})
	wantError(t, err, blob.ErrPrecondition)
}

const racers = 32

func testIfNoneMatchRace(t *testing.T, s blob.Store, _ Options) {
	for round := range 4 {
		key := fmt.Sprintf("race/%d.bin", round)
		winner := race(t, round, blob.ErrExists, func(body []byte) error {
			_, err := s.Put(t.Context(), key, bytes.NewReader(body), blob.PutOptions{IfNoneMatch: true})
			return err
		})
		if got, _ := read(t, s, key, 0, -1); !bytes.Equal(got, winner) {
			t.Errorf("%s: object is not the winner's", key)
		}
	}
}

func testIfMatchRace(t *testing.T, s blob.Store, _ Options) {
	at := put(t, s, "cas.bin", []byte("start"))
	for round := range 4 {
		winner := race(t, round, blob.ErrPrecondition, func(body []byte) error {
			_, err := s.Put(t.Context(), "cas.bin", bytes.NewReader(body), blob.PutOptions{IfMatch: at.ETag})
			return err
		})
		got, info := read(t, s, "cas.bin", 0, -1)
		if !bytes.Equal(got, winner) {
			t.Error("object is not the winner's")
		}
		at = info
	}
}

// race runs put from many goroutines, each with a body of its own, and returns the
// body of the only winner. All others must have lost with the given error.
func race(t *testing.T, round int, lost error, put func(body []byte) error) []byte {
	t.Helper()
	type outcome struct {
		body []byte
		err  error
	}
	start := make(chan struct{})
	outcomes := make(chan outcome)
	for i := range racers {
		go func() {
			body := Random(uint64(round*racers+i), 2000)
			<-start
			outcomes <- outcome{body, put(body)}
		}()
	}
	close(start)
	var winners [][]byte
	for range racers {
		switch o := <-outcomes; {
		case o.err == nil:
			winners = append(winners, o.body)
		case !errors.Is(o.err, lost):
			t.Errorf("loser got %v, want %v", o.err, lost)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d winners, want 1", len(winners))
	}
	return winners[0]
}

func testOverwrite(t *testing.T, s blob.Store, _ Options) {
	const rounds = 20
	sizes := []int{100, 70000}
	put(t, s, "over.bin", bytes.Repeat([]byte{0}, sizes[0]))
	writer := make(chan error, 1)
	go func() {
		for i := range rounds {
			body := bytes.Repeat([]byte{byte(i)}, sizes[i%2])
			if _, err := s.Put(t.Context(), "over.bin", bytes.NewReader(body), blob.PutOptions{}); err != nil {
				writer <- err
				return
			}
		}
		writer <- nil
	}()
	for done := false; !done; {
		select {
		case err := <-writer:
			noError(t, err)
			done = true
		default:
		}
		got, info := read(t, s, "over.bin", 0, -1)
		if int64(len(got)) != info.Size || len(bytes.Trim(got, string(got[:1]))) != 0 {
			t.Fatalf("a reader saw %d bytes of a mixture, info %+v", len(got), info)
		}
	}
	if got, _ := read(t, s, "over.bin", 0, -1); got[0] != rounds-1 {
		t.Errorf("last version is %d, want %d", got[0], rounds-1)
	}
}

func testDelete(t *testing.T, s blob.Store, _ Options) {
	put(t, s, "del/a.bin", []byte("a"))
	put(t, s, "del/b.bin", []byte("b"))
	noError(t, s.Delete(t.Context()))
	for range 2 {
		noError(t, s.Delete(t.Context(), "del/a.bin", "never/was.bin"))
		_, _, err := s.Get(t.Context(), "del/a.bin", 0, -1)
		wantError(t, err, blob.ErrNotFound)
	}
	equalKeys(t, keys(t, s, "", ""), []string{"del/b.bin"})
	noError(t, s.Delete(t.Context(), "del/b.bin"))
	equalKeys(t, keys(t, s, "", ""), nil)
	put(t, s, "del/b.bin", []byte("again"))
}

func testDeleteMany(t *testing.T, s blob.Store, _ Options) {
	var all []string
	for i := range 30 {
		all = append(all, fmt.Sprintf("many/%03d.bin", i))
		put(t, s, all[i], []byte("x"))
	}
	for i := range 1100 { // more than one batch of S3
		all = append(all, fmt.Sprintf("many/absent-%04d.bin", i))
	}
	put(t, s, "many/keep.bin", []byte("x"))
	// A real server on a busy machine cuts an answer now and then; the contract says
	// that such a call is to be made again.
	err := s.Delete(t.Context(), all...)
	for tries := 1; blob.Retryable(err) && tries < 5; tries++ {
		t.Logf("deleting again after %v", err)
		err = s.Delete(t.Context(), all...)
	}
	noError(t, err)
	equalKeys(t, keys(t, s, "", ""), []string{"many/keep.bin"})
}

func testOddKeys(t *testing.T, s blob.Store, opts Options) {
	all := []string{
		"a b", "trailing space ", "trailing.dot.", "-dash", "--", "plus+", "per%cent", "%2F", "%", "%%", "a%_b",
		"colon:", "eq=", "amp&", "at@", "bang!", "dollar$", "quote'", `dquote"`, "paren()", "star*", "comma,", "semi;",
		"tilde~", "hash#", "ask?", `back\slash`, "lt<gt>", "pipe|", "caret^", "tick`", "brace{}", "bracket[]",
		"Case", "case", "CASE", "Folder/x", "folder/x", "dir.with.dots/x", "dir.with.dots/x.y",
		"ünïcode/ключ", "日本語.zst", "emoji-🧊", "nfc-\u00e9", "nfd-e\u0301",
		"bucket=b/stream=s/0001-0002.ndjson.zst", "deep/er/and/deep/er/again/k.bin", "a.tmp", "owner",
		strings.Repeat("l", 200) + ".bin", strings.Repeat("m", 100) + "/" + strings.Repeat("n", 100) + "/x",
		strings.Repeat("d/", 100) + "x",
	}
	if !opts.PlainKeys {
		all = append(all,
			"k", "k/sub", "k/sub/sub", "k.d", "k.d/x", "..", ".", "../up", "a/../b", "a/./b", "./a", "a//b", "//", "/",
			"/lead", "trail/", ".hidden", ".tmp", ".tmp/x", ".lock", "...", "a/..", "dots.../x", ".firn",
			strings.Repeat("x", 85), strings.Repeat("x", 250), strings.Repeat("x", 300), strings.Repeat("x", 64)+"/y",
			strings.Repeat("x", 64)+".y", strings.Repeat(".", 300), strings.Repeat(".", 300)+"/z",
			strings.Repeat("y", 1000), strings.Repeat("é", 500), strings.Repeat("/", 1000), strings.Repeat("%", 1000),
		)
	}
	for i, k := range all {
		_, err := s.Put(t.Context(), k, strings.NewReader(fmt.Sprint(i)), blob.PutOptions{IfNoneMatch: true})
		if err != nil {
			t.Fatalf("put %q: %v", k, err)
		}
	}
	for i, k := range all {
		if got, info := read(t, s, k, 0, -1); string(got) != fmt.Sprint(i) || info.Key != k {
			t.Errorf("get %q: %q, key %q", k, got, info.Key)
		}
	}
	slices.Sort(all)
	equalKeys(t, keys(t, s, "", ""), all)
	for i := 0; i < len(all); i += 5 {
		equalKeys(t, keys(t, s, "", all[i]), all[i+1:])
	}
	noError(t, s.Delete(t.Context(), all...))
	equalKeys(t, keys(t, s, "", ""), nil)
}

func testBadKeys(t *testing.T, s blob.Store, _ Options) {
	for _, k := range []string{"", "\x00", "a\x00b", "a\nb", "\x7f", "\u0085", "\xff", "a\xc3", "\ufffe", strings.Repeat("k", blob.MaxKey+1)} {
		_, err := s.Put(t.Context(), k, strings.NewReader("x"), blob.PutOptions{})
		wantError(t, err, blob.ErrKey)
		_, _, err = s.Get(t.Context(), k, 0, -1)
		wantError(t, err, blob.ErrKey)
		put(t, s, "good.bin", []byte("x"))
		err = s.Delete(t.Context(), "good.bin", k)
		var de *blob.DeleteError
		if !errors.As(err, &de) || len(de.Failed) != 1 || !errors.Is(de.Failed[k], blob.ErrKey) {
			t.Errorf("delete %q: %v, want ErrKey for it alone", k, err)
		}
		equalKeys(t, keys(t, s, "", ""), nil)
	}
}

func testList(t *testing.T, s blob.Store, opts Options) {
	all := []string{"a.bin", "b/1.bin", "b/2.bin", "b/c/3.bin", "b-/4.bin", "b.bin", "b0.bin", "c/x.bin", "cc/y.bin", "d.bin", "é.bin", "z.bin"}
	for i := range 40 { // more than a page of a store that is set to few keys
		all = append(all, fmt.Sprintf("page/%02d.bin", i))
	}
	for i, k := range all {
		put(t, s, k, Random(uint64(i), i))
	}
	sizes := map[string]int{}
	for i, k := range all {
		sizes[k] = i
	}
	slices.Sort(all)
	for _, c := range []struct{ prefix, after string }{
		{"", ""}, {"b", ""}, {"b/", ""}, {"b/c", ""}, {"b/c/", ""}, {"page/1", ""}, {"none", ""}, {"z.bin", ""}, {"z.bin/", ""},
		{"", "b"}, {"", "b/"}, {"", "b/1.bin"}, {"", "b/1.bi"}, {"", "b/c/3.bin"}, {"", "b/c/zzz"}, {"", "b0"}, {"", "zzzz"},
		{"", "é.bin"}, {"b/", "b/1.bin"}, {"b/", "a"}, {"b/", "c"}, {"page/", "page/38.bin"}, {"page/", "page/39.bin"},
	} {
		if _, isKey := sizes[c.after]; opts.AfterKeys && c.after != "" && !isKey {
			continue
		}
		var want []string
		for _, k := range all {
			if strings.HasPrefix(k, c.prefix) && k > c.after {
				want = append(want, k)
			}
		}
		var got []string
		noError(t, s.List(t.Context(), c.prefix, c.after, func(info blob.Info) error {
			got = append(got, info.Key)
			if info.Size != int64(sizes[info.Key]) || info.ETag == "" || info.Modified.IsZero() {
				t.Errorf("listed %+v, want %d bytes", info, sizes[info.Key])
			}
			return nil
		}))
		t.Logf("list prefix %q after %q", c.prefix, c.after)
		equalKeys(t, got, want)
	}
}

func testListEnds(t *testing.T, s blob.Store, _ Options) {
	for i := range 5 {
		put(t, s, fmt.Sprintf("l/%d.bin", i), []byte("x"))
	}
	enough := errors.New("enough")
	n := 0
	err := s.List(t.Context(), "l/", "", func(blob.Info) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	})
	if err != enough || n != 3 {
		t.Errorf("list ended with %v after %d keys, want the callback's own error after 3", err, n)
	}
}

func testCanceled(t *testing.T, s blob.Store, opts Options) {
	data := Random(9, opts.Large)
	put(t, s, "there.bin", data)
	ctx, cancel := context.WithCancel(t.Context())
	r, _, err := s.Get(ctx, "there.bin", 0, -1)
	noError(t, err)
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 100))
	noError(t, err)
	cancel()
	// A store may have some bytes at hand, but not the end.
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("read after cancel: %v", err)
	}
	_, err = s.Put(ctx, "new.bin", bytes.NewReader(data), blob.PutOptions{})
	wantError(t, err, context.Canceled)
	_, _, err = s.Get(ctx, "there.bin", 0, -1)
	wantError(t, err, context.Canceled)
	wantError(t, s.Delete(ctx, "there.bin"), context.Canceled)
	wantError(t, s.List(ctx, "", "", func(blob.Info) error { return nil }), context.Canceled)
	equalKeys(t, keys(t, s, "", ""), []string{"there.bin"})
}

// Random returns n bytes that depend on the seed alone.
func Random(seed uint64, n int) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

func put(t *testing.T, s blob.Store, key string, data []byte) blob.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, bytes.NewReader(data), blob.PutOptions{})
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return info
}

func read(t *testing.T, s blob.Store, key string, off, n int64) ([]byte, blob.Info) {
	t.Helper()
	b, info, err := blob.ReadAll(t.Context(), s, key, off, n)
	if err != nil {
		t.Fatalf("get %q [%d, +%d): %v", key, off, n, err)
	}
	return b, info
}

func keys(t *testing.T, s blob.Store, prefix, after string) []string {
	t.Helper()
	var all []string
	err := s.List(t.Context(), prefix, after, func(info blob.Info) error {
		all = append(all, info.Key)
		return nil
	})
	if err != nil {
		t.Fatalf("list %q: %v", prefix, err)
	}
	return all
}

func equalKeys(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%d keys, want %d; from number %d on %q, want %q", len(got), len(want), i, tail(got, i), tail(want, i))
			return
		}
	}
}

// tail returns a few keys from number i on.
func tail(keys []string, i int) []string {
	i = min(i, len(keys))
	return keys[i:min(i+3, len(keys))]
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}
