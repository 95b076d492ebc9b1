package verify_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"firn/internal/verify"
)

// A damaged block of the hot tier is a problem that is found; the rest is looked at.
func TestRunFindsDamagedTables(t *testing.T) {
	a := newArchive(t)
	db, err := pebble.Open("hot", &pebble.Options{FS: a.disk, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Compact(context.Background(), []byte{0}, []byte{255}, false); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := a.disk.List("hot")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		f, err := a.disk.OpenReadWrite("hot/"+name, "test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("damage, damage, damage"), 100); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := verify.Open("hot", a.disk)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	r, err := verify.Run(context.Background(), verify.RunOptions{
		State: func() (verify.Reader, func()) { return opened, func() {} }, Remote: a.blobs,
	})
	if err == nil && r.Found == 0 {
		t.Error("the damage was not found")
	}
}
