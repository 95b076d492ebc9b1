package fs_test

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fs"
	"firn/internal/blob/mem"

	"golang.org/x/sync/errgroup"
)

func open(t *testing.T, dir string, opts fs.Options) *fs.Store {
	t.Helper()
	s, err := fs.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Store { return open(t, t.TempDir(), fs.Options{}) }, blobtest.Options{})
}

func put(t *testing.T, s blob.Store, key, data string) blob.Info {
	t.Helper()
	info, err := s.Put(t.Context(), key, strings.NewReader(data), blob.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func keys(t *testing.T, s blob.Store) []string {
	t.Helper()
	var all []string
	if err := s.List(t.Context(), "", "", func(info blob.Info) error {
		all = append(all, info.Key)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// files returns all files and empty folders below dir, but for the lock.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(p string, d iofs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		entries, _ := os.ReadDir(p)
		if rel != ".lock" && (!d.IsDir() || len(entries) == 0) {
			all = append(all, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The paths are a format: other tools and later releases read them.
func TestPaths(t *testing.T) {
	for key, want := range map[string]string{
		"store/bucket=b/stream=s/00-01.ndjson.zst": "store/bucket=b/stream=s/00-01.ndjson.zst",
		"owner":            "owner%",
		"k/sub":            "k/sub%",
		"stream=a.b/x.zst": "stream=a%2Eb/x.zst",
		"../..":            "%2E%2E/%2E%2E%",
		".tmp":             "%2Etmp%",
		"x.":               "x%2E%",
		"a//b.c":           "a/%_/b.c",
		"end/":             "end/%",
		"é%:.x":            "%C3%A9%25%3A.x",
		strings.Repeat("n", 199) + "/" + strings.Repeat("m", 199): strings.Repeat("n", 199) + "/" + strings.Repeat("m", 199) + "%",
		strings.Repeat("n", 201) + "/x":                           strings.Repeat(strings.Repeat("n", 64)+"%+/", 3) + strings.Repeat("n", 9) + "/x%",
		strings.Repeat("n", 201):                                  strings.Repeat(strings.Repeat("n", 64)+"%+/", 3) + strings.Repeat("n", 9) + "%",
	} {
		dir := t.TempDir()
		put(t, open(t, dir, fs.Options{}), key, "x")
		if got := files(t, dir); !slices.Equal(got, []string{".tmp", want}) && !slices.Equal(got, []string{want, ".tmp"}) {
			t.Errorf("key %q: files %q, want %q", key, got, want)
		}
	}
}

func TestDeleteRemovesFolders(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, fs.Options{})
	put(t, s, "a/b/c/d.x", "1")
	put(t, s, "a/b/e.x", "2")
	if err := s.Delete(t.Context(), "a/b/c/d.x"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{".tmp", "a/b/e.x"}) {
		t.Errorf("files %q", got)
	}
	if err := s.Delete(t.Context(), "a/b/e.x", "a/b/e.x", "x/y/z"); err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); !slices.Equal(got, []string{".tmp"}) {
		t.Errorf("files %q", got)
	}
}

// Puts and deletions that make and remove the same folders must not fail.
func TestFoldersComeAndGo(t *testing.T) {
	s := open(t, t.TempDir(), fs.Options{})
	var g errgroup.Group
	for i := range 8 {
		key := fmt.Sprintf("a/b/%d.x", i)
		g.Go(func() error {
			for range 50 {
				if _, err := s.Put(t.Context(), key, strings.NewReader(key), blob.PutOptions{IfNoneMatch: true}); err != nil {
					return err
				}
				if got, _, err := blob.ReadAll(t.Context(), s, key, 0, -1); err != nil || string(got) != key {
					return fmt.Errorf("read %q: %w", got, err)
				}
				if err := s.Delete(t.Context(), key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// What a crash leaves is not listed, and goes once it is old enough to be nobody's.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, fs.Options{})
	put(t, s, "k.x", "x")
	written := time.Now()
	for _, name := range []string{".tmp/put-1", ".hidden", "foreign%zz", "plain"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := keys(t, s); !slices.Equal(got, []string{"k.x"}) {
		t.Errorf("listed %q", got)
	}
	for _, c := range []struct {
		later time.Duration
		there bool
	}{{23 * time.Hour, true}, {25 * time.Hour, false}} {
		open(t, dir, fs.Options{Now: func() time.Time { return written.Add(c.later) }})
		if _, err := os.Stat(filepath.Join(dir, ".tmp/put-1")); (err == nil) != c.there {
			t.Errorf("%v later: %v", c.later, err)
		}
	}
	if got := keys(t, s); !slices.Equal(got, []string{"k.x"}) {
		t.Errorf("listed %q", got)
	}
}

// A disk that is not mounted must not look like objects that are gone.
func TestFolderIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, fs.Options{})
	put(t, s, "k.x", "x")
	if err := os.Rename(dir, dir+"-away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil { // the empty mount point
		t.Fatal(err)
	}
	_, _, getErr := s.Get(t.Context(), "k.x", 0, -1)
	_, putErr := s.Put(t.Context(), "k.x", strings.NewReader("x"), blob.PutOptions{})
	for name, err := range map[string]error{
		"get": getErr, "put": putErr, "delete": s.Delete(t.Context(), "k.x"),
		"list": s.List(t.Context(), "", "", func(blob.Info) error { return nil }),
	} {
		if !errors.Is(err, blob.ErrUnavailable) || errors.Is(err, blob.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTruncatedWhileRead(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, fs.Options{})
	put(t, s, "k.x", "0123456789")
	r, _, err := s.Get(t.Context(), "k.x", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(filepath.Join(dir, "k.x"), 5); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); !errors.Is(err, blob.ErrCorrupt) {
		t.Errorf("read %q: %v", got, err)
	}
}

// A clock that stands still or goes back must not give two versions one ETag.
func TestETagWithoutClock(t *testing.T) {
	now := time.Unix(1e9, 0)
	s := open(t, t.TempDir(), fs.Options{Now: func() time.Time { return now }})
	seen := map[string]bool{}
	for i := range 10 {
		info := put(t, s, "k.x", fmt.Sprint(i))
		_, got, err := blob.ReadAll(t.Context(), s, "k.x", 0, -1)
		if err != nil || got.ETag != info.ETag || seen[info.ETag] {
			t.Fatalf("version %d: put gave %q, get %q, %v", i, info.ETag, got.ETag, err)
		}
		seen[info.ETag] = true
		if i == 5 {
			now = now.Add(-time.Hour)
		}
	}
}

// Two processes that share a folder are told apart like two callers of one.
func TestTwoStores(t *testing.T) {
	dir := t.TempDir()
	stores := []*fs.Store{open(t, dir, fs.Options{}), open(t, dir, fs.Options{})}
	at := put(t, stores[0], "k.x", "start")
	for round := range 20 {
		won := make(chan blob.Info, 8)
		var g errgroup.Group
		for i := range 8 {
			g.Go(func() error {
				info, err := stores[i%2].Put(t.Context(), "k.x", strings.NewReader("x"), blob.PutOptions{IfMatch: at.ETag})
				if err == nil {
					won <- info
				} else if !errors.Is(err, blob.ErrPrecondition) {
					return err
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if len(won) != 1 {
			t.Fatalf("round %d: %d winners", round, len(won))
		}
		at = <-won
	}
}

// Random keys of few letters, so that files, folders and pieces of long names
// meet, behave as they do in memory.
func TestLikeMemory(t *testing.T) {
	s, m := open(t, t.TempDir(), fs.Options{}), mem.New(mem.Options{})
	rnd := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "b", "/", ".", "%", "é", strings.Repeat("a", 64), strings.Repeat("b", 100)}
	key := func() string {
		k := parts[rnd.IntN(2)]
		for range rnd.IntN(6) {
			k += parts[rnd.IntN(len(parts))]
		}
		return k
	}
	for i := range 400 {
		k := key()
		if i%4 == 3 {
			if err := errors.Join(s.Delete(t.Context(), k), m.Delete(t.Context(), k)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		put(t, s, k, k)
		put(t, m, k, k)
	}
	for range 100 {
		prefix, after := "", key()
		if rnd.IntN(2) == 0 {
			prefix = key()
		}
		list := func(s blob.Store) (all []string) {
			if err := s.List(t.Context(), prefix, after, func(info blob.Info) error {
				all = append(all, info.Key)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		if got, want := list(s), list(m); !slices.Equal(got, want) {
			t.Fatalf("prefix %q after %q: %d keys, want %d", prefix, after, len(got), len(want))
		}
	}
	if len(keys(t, m)) < 100 {
		t.Errorf("only %d keys", len(keys(t, m)))
	}
}
