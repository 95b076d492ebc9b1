package tiertest

import (
	"errors"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// disk is a file system in memory that can be copied as a crash would leave it.
type disk struct {
	mem *vfs.MemFS
	fs  vfs.FS

	mu   sync.Mutex
	left int    // operations until fire; 0: not armed
	fire func() // called before the operation
}

func newDisk(mem *vfs.MemFS) *disk {
	d := &disk{mem: mem}
	d.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(d.count))
	return d
}

// arm calls fire right before the n-th operation from now on that changes the disk.
func (d *disk) arm(n int, fire func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.fire = n, fire
}

// disarm reports whether fire was called or is being called.
func (d *disk) disarm() (fired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fired = d.left == 0
	d.left = 0
	return fired
}

func (d *disk) count(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, "marker.manifest") {
		// Pebble has synced the new manifest but not its directory, and now points to
		// it. With the file systems that people use, syncing a new file makes its name
		// durable too; with this one it does not.
		if err := d.syncDir(d.mem.PathDir(op.Path)); err != nil {
			return err
		}
	}
	d.mu.Lock()
	fire := d.left == 1
	if d.left > 0 {
		d.left--
	}
	d.mu.Unlock()
	if fire {
		d.fire()
	}
	return nil
}

func (d *disk) syncDir(name string) error {
	f, err := d.mem.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// crash returns the disk as a crash at this moment leaves it.
func (d *disk) crash(c *Crash) *vfs.MemFS {
	return d.mem.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: c.Unsynced, RNG: rand.New(rand.NewPCG(c.Seed, 0)),
	})
}
