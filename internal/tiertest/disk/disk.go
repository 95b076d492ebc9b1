// Package disk is a disk in memory for tests of what stands on the hot tier. It can
// lose power: then what was not synced is gone.
package disk

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"firn/internal/verify"
)

// Disk is a file system in memory.
type Disk struct{ fs *vfs.MemFS }

// New returns an empty disk.
func New() *Disk { return &Disk{vfs.NewCrashableMem()} }

// FS is for hot.Options.
func (d *Disk) FS() vfs.FS { return d.fs }

// Crash returns what the disk would hold if the power failed now. The disk itself
// goes on, as if nothing had happened.
func (d *Disk) Crash() *Disk { return &Disk{d.fs.CrashClone(vfs.CrashCloneCfg{})} }

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
