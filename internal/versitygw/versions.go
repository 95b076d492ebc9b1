//go:build linux

package versitygw

import (
	"syscall"
	"testing"
)

// KeepVersions turns the versioning of a bucket on, for a server that keeps versions.
func (s *Server) KeepVersions(t testing.TB, bucket string) {
	t.Helper()
	// The server keeps what it knows of a bucket in attributes of its folder.
	if err := syscall.Setxattr(s.File(bucket, ""), "user.versioning", []byte{1}, 0); err != nil {
		t.Fatal(err)
	}
}
