package fs_test

import (
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/fs"
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
