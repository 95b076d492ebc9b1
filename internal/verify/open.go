package verify

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrInUse: a server runs on the data directory.
var ErrInUse = errors.New("a server runs on this data directory: have it verify itself (--online), or stop it")

// Open opens the hot tier in a directory that no server uses, to be read only.
// Errors: [ErrInUse].
func Open(dir string, fs vfs.FS) (*pebble.DB, error) {
	if fs == nil {
		fs = vfs.Default
	}
	db, err := pebble.Open(dir, &pebble.Options{
		FS: fs, ReadOnly: true, ErrorIfNotExists: true, Logger: silent{},
		// Without it Pebble ends the process at the first damaged block.
		EventListener: &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}},
	})
	// Pebble has no sentinel for a lock that this very process has.
	if err != nil && (errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "lock held by current process")) {
		return nil, fmt.Errorf("open %s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	return db, nil
}

// silent: what Pebble has to say shows in what is found.
type silent struct{}

func (silent) Infof(string, ...any)         {}
func (silent) Errorf(string, ...any)        {}
func (silent) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
