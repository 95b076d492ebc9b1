// Package disk is a disk in memory for tests of what stands on the hot tier. It can
// lose power: then what was not synced is gone.
package disk

import "github.com/cockroachdb/pebble/v2/vfs"

// Disk is a file system in memory.
type Disk struct{ fs *vfs.MemFS }

// New returns an empty disk.
func New() *Disk { return &Disk{vfs.NewCrashableMem()} }

// FS is for hot.Options.
func (d *Disk) FS() vfs.FS { return d.fs }

// Crash returns what the disk would hold if the power failed now. The disk itself
// goes on, as if nothing had happened.
func (d *Disk) Crash() *Disk { return &Disk{d.fs.CrashClone(vfs.CrashCloneCfg{})} }
