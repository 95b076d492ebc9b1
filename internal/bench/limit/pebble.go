package limit

import (
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// OpenPebble opens and closes a database that nobody else has open, and returns how long
// the opening took; at its end it calls opened. It writes as little as Pebble can.
func OpenPebble(dir string, opened func()) (time.Duration, error) {
	began := time.Now()
	db, err := pebble.Open(dir, &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, ErrorIfNotExists: true, Logger: silent{},
		MemTableSize: 64 << 20, L0CompactionThreshold: 1000, L0StopWritesThreshold: 2000,
		DisableAutomaticCompactions: true,
	})
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", dir, err)
	}
	took := time.Since(began)
	opened()
	if err := db.Close(); err != nil {
		return 0, fmt.Errorf("close %s: %w", dir, err)
	}
	return took, nil
}

// silent drops what Pebble says.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

// Fatalf is not to return.
func (silent) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
