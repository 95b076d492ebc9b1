package hot_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"firn/tier/hot"
)

// While Pebble writes its manifest, which takes as long as the disk likes, appends
// are taken and views opened and closed. It fails by waiting for ever.
func TestManifestStallsNobody(t *testing.T) {
	var hold atomic.Bool
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if hold.Load() && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST") {
			once.Do(func() { close(held) })
			<-release
		}
		return nil
	}))
	s := openWith(t, hot.Options{FS: disk, MemTableBytes: 256 << 10})
	defer s.Close()
	rec := create(t, s, "a")
	hold.Store(true)
	for range 30 { // more than a memtable holds, so that it is flushed
		appendTo(t, s, rec.ID, strings.Repeat("x", 10_000))
	}
	<-held
	for range 20 {
		old := s.View()
		appendTo(t, s, rec.ID, "x")
		old.Close()
	}
	close(release)
}
