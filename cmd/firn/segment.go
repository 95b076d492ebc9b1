package main

import (
	"fmt"
	"os"

	"firn/pkg/segment"
)

// segmentCommand is `firn segment`.
type segmentCommand struct {
	Dump segmentDump `cmd:"" help:"Print what an object holds: streams, ranges, frames. zstd -dc prints the bytes."`
}

type segmentDump struct {
	File string `arg:"" help:"An object, as a file."`
}

// Run prints the tail of an object.
func (c *segmentDump) Run(i *invocation) error {
	f, err := os.Open(c.File)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if err := segment.Dump(i.stdout, f, info.Size()); err != nil {
		return fmt.Errorf("dump %s: %w", c.File, err)
	}
	return nil
}
