package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"syscall"

	"golang.org/x/net/netutil"
)

// The process's limit of open files is divided, so that clients who come in numbers
// wait, instead of the store not being able to open its tables, which stops it.
const (
	// otherFiles are logs, the connections to the object store, the operators' listener,
	// snapshots on their way.
	otherFiles = 96
	// minTables is the least that Pebble makes do with, maxTables its own default.
	minTables, maxTables = 64, 1000
	// minFiles leaves a few connections, fewFiles is where a start warns.
	minFiles, fewFiles = otherFiles + minTables + 32, 4096
)

var errFewFiles = errors.New("the limit of open files is too low")

// descriptors are what the limit of open files is used for.
type descriptors struct {
	limit       uint64
	tables      int
	connections int
}

// divide divides a limit. Errors: errFewFiles.
func divide(limit uint64) (descriptors, error) {
	if limit < minFiles {
		return descriptors{}, fmt.Errorf("%w: %d, at least %d are needed; raise it with ulimit -n or LimitNOFILE=", errFewFiles, limit, minFiles)
	}
	n := int(min(limit, math.MaxInt32))
	tables := min(max(n/4, minTables), maxTables)
	return descriptors{limit: limit, tables: tables, connections: n - tables - otherFiles}, nil
}

// openFiles is the limit of this process, which the runtime has raised as far as it may.
func openFiles() (uint64, error) {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return uint64(r.Cur), nil
}

// bound lets a listener have so many connections at a time; others wait to be accepted.
func (d descriptors) bound(l net.Listener, log *slog.Logger) net.Listener {
	if d.limit < fewFiles {
		log.Warn("the limit of open files is low, more clients than this have to wait; raise it with ulimit -n or LimitNOFILE=",
			"limit", d.limit, "clients", d.connections)
	}
	return netutil.LimitListener(l, d.connections)
}
