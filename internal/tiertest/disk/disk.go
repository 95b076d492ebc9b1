// Package disk is a disk in memory for tests of what stands on the hot tier. It can
// lose power: then what was not synced is gone, or a part of it.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"firn/internal/verify"
)

// Disk is a file system in memory.
type Disk struct {
	mem *vfs.MemFS
	fs  vfs.FS

	mu   sync.Mutex // guards what follows
	left int        // operations until fire; 0: not armed
	fire func()
}

// New returns an empty disk.
func New() *Disk { return of(vfs.NewCrashableMem()) }

func of(mem *vfs.MemFS) *Disk {
	d := &Disk{mem: mem}
	d.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(d.count))
	return d
}

// Mem is the file system without what counts its operations.
func (d *Disk) Mem() *vfs.MemFS { return d.mem }

// FS is for hot.Options.
func (d *Disk) FS() vfs.FS { return d.fs }

// Crash returns what the disk would hold if the power failed now. The disk itself
// goes on, as if nothing had happened.
func (d *Disk) Crash() *Disk { return of(d.mem.CrashClone(vfs.CrashCloneCfg{})) }

// CrashPart is Crash, but of what was not synced each part is kept with a probability
// in percent.
func (d *Disk) CrashPart(percent int, seed uint64) *Disk {
	return of(d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0))}))
}

// Arm calls fire right before the n-th operation from now on that changes the disk.
func (d *Disk) Arm(n int, fire func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.fire = n, fire
}

// Disarm reports whether fire was called or is being called.
func (d *Disk) Disarm() (fired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fired = d.fire != nil && d.left == 0
	d.left, d.fire = 0, nil
	return fired
}

func (d *Disk) count(op errorfs.Op) error {
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
	var fire func()
	d.mu.Lock()
	if d.left > 0 {
		if d.left--; d.left == 0 {
			fire = d.fire
		}
	}
	d.mu.Unlock()
	if fire != nil {
		fire()
	}
	return nil
}

func (d *Disk) syncDir(name string) error {
	f, err := d.mem.OpenDir(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Damage inverts a bit of text where it stands in a table of a closed store, and counts
// the tables in which it did. What Pebble has compressed or still has in its log only is
// not found.
func (d *Disk) Damage(dir string, text []byte) (tables int, err error) {
	names, err := d.mem.List(dir)
	if err != nil {
		return 0, err
	}
	for _, n := range names {
		if !strings.HasSuffix(n, ".sst") {
			continue
		}
		name := d.mem.PathJoin(dir, n)
		data, err := d.read(name)
		if err != nil {
			return tables, err
		}
		at := bytes.Index(data, text)
		if at < 0 {
			continue
		}
		data[at] ^= 1
		f, err := d.mem.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return tables, err
		}
		_, err = f.Write(data)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return tables, err
		}
		tables++
	}
	return tables, d.syncDir(dir)
}

func (d *Disk) read(name string) ([]byte, error) {
	f, err := d.mem.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// Problems checks the hot tier that a directory would hold if the power failed now.
func (d *Disk) Problems(dir string) ([]verify.Problem, error) {
	db, err := pebble.Open(dir, &pebble.Options{FS: d.Crash().fs, FormatMajorVersion: pebble.FormatNewest, Logger: silent{}})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	defer db.Close()
	c, err := verify.Load(db, verify.Options{})
	if err != nil {
		return nil, err
	}
	return c.Check(), nil
}

type silent struct{}

func (silent) Infof(string, ...any)         {}
func (silent) Errorf(string, ...any)        {}
func (silent) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
