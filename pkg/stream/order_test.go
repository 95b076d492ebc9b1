package stream_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"firn/pkg/stream"
)

// Offsets sort as text in the order of lives and positions, two are never spelt alike,
// and none needs escaping or could be taken for a sentinel (B§8).
func TestOffsetsSortAsText(t *testing.T) {
	edges := []uint64{0, 1, 9, 10, 99, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, maxField - 1, maxField}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		edges = append(edges, random.Uint64N(maxField))
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	last := ""
	for _, life := range edges {
		for _, position := range edges {
			o := stream.Offset{Life: life, Position: position}.String()
			if o <= last {
				t.Fatalf("%s comes before %s", o, last)
			}
			if len(o) != 33 || strings.Trim(o, "0123456789_") != "" {
				t.Fatalf("%s is not made of digits", o)
			}
			last = o
		}
	}
}
