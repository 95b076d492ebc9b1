package mem_test

import (
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/blobtest"
	"firn/internal/blob/mem"
)

func TestStore(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Store { return mem.New(mem.Options{}) }, blobtest.Options{})
}
