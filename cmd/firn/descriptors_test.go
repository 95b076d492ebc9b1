package main

import (
	"errors"
	"math"
	"testing"
)

func TestDivideOpenFiles(t *testing.T) {
	for _, c := range []struct {
		limit               uint64
		tables, connections int
		err                 error
	}{
		{191, 0, 0, errFewFiles},
		{192, 64, 32, nil},
		{1024, 256, 672, nil},
		{1 << 20, 1000, 1<<20 - 1096, nil},
		{math.MaxUint64, 1000, math.MaxInt32 - 1096, nil},
	} {
		d, err := divide(c.limit)
		if !errors.Is(err, c.err) || d.tables != c.tables || d.connections != c.connections {
			t.Errorf("%d files: got %+v, %v", c.limit, d, err)
		}
	}
}
