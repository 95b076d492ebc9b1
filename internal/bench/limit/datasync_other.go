//go:build !linux

package limit

import "os"

func datasync(f *os.File) error { return f.Sync() }
