//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"

	"firn/internal/versitygw"
)

// TestDiskLostOnS3 is TestDiskLost with a real S3 server.
func TestDiskLostOnS3(t *testing.T) {
	gw := versitygw.Start(t, versitygw.Options{})
	gw.MakeBucket(t, "archive")
	dir := t.TempDir()
	secret := func(name, value string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	loseDisk(t, []string{
		"--cold", "s3://archive/firn?region=us-east-1&path_style=true&endpoint=" + gw.Endpoint,
		"--cold.access-key-id-file", secret("key", gw.AccessKey), "--cold.secret-access-key-file", secret("secret", gw.SecretKey),
	})
}
