package limit

import (
	"fmt"
	"os"
	"syscall"
)

// datasync is the sync that databases use: it leaves out times of the file.
func datasync(f *os.File) error {
	if err := syscall.Fdatasync(int(f.Fd())); err != nil {
		return fmt.Errorf("sync log: %w", err)
	}
	return nil
}
