package hot

import (
	"math/bits"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

const (
	// runSegments of one size class make a run that is merged: the result is of the
	// next class at least, so a byte is written again at most once a class.
	runSegments = 8
	// MaxRun bounds how many segments a run has, and how far back one is looked for.
	MaxRun = 64
)

// Run is a range of a stream whose segments are small and are to be merged.
type Run struct {
	ID       stream.ID
	From, To uint64
}

// Empty reports whether there is nothing to merge.
func (r Run) Empty() bool { return r.From == r.To }

// sizeClass counts powers of 8.
func sizeClass(size uint64) int { return (bits.Len64(size) - 1) / 3 }

// runOf looks for a run among the last segments of a stream: from the end backwards,
// until there are runSegments of the largest class met. Smaller ones between them
// count for nothing but go along. A segment of half the target ends the search, for
// it is never merged. Of a long run the oldest segments are taken, a target's worth.
//
// Only keys are read: segments from the floor on meet each other.
func runOf(r pebble.Reader, rec *Record, target uint64) (Run, error) {
	if rec.Segments < runSegments || rec.Sealed <= rec.Floor {
		return Run{}, nil
	}
	prefix := keyOf(kindSegment, rec.ID)
	it, err := r.NewIter(iterOptions(prefix, keyAfter(prefix)))
	if err != nil {
		return Run{}, err
	}
	var (
		edges   = append(make([]uint64, 0, MaxRun+1), rec.Sealed) // of the segments, backwards
		counts  [22]int                                           // of the segments by class
		largest int
	)
	for ok := it.Last(); ok && len(edges) <= MaxRun; ok = it.Prev() {
		from, to := field(it.Key(), 9), edges[len(edges)-1]
		if to <= rec.Floor || to-from >= target/2 {
			break
		}
		edges = append(edges, from)
		class := sizeClass(to - from)
		counts[class]++
		if largest = max(largest, class); counts[largest] == runSegments {
			return runAt(rec.ID, edges, target), closeIter(it, nil)
		}
	}
	return Run{}, closeIter(it, nil)
}

// runAt is the run between edges, or the oldest part of it that has a target's worth.
func runAt(id stream.ID, edges []uint64, target uint64) Run {
	run := Run{ID: id, From: edges[len(edges)-1]}
	for i := len(edges) - 2; i >= 0; i-- {
		if run.To = edges[i]; run.To-run.From >= target {
			break
		}
	}
	return run
}

// RunOf returns the segments of a stream of a view that are to be merged; it may be
// empty.
func (s *Store) RunOf(v *View, rec *Record) (Run, error) {
	return runOf(v.s.snap, rec, s.opts.SealTarget)
}

// Sparse returns at most limit objects after one of which less than half is named.
func (v *View) Sparse(after string, limit int) ([]string, error) {
	var list []string
	err := v.scan([]byte{kindSparse}, append(keySparse(after), 0), func(key, _ []byte) (bool, error) {
		list = append(list, string(key[1:]))
		return len(list) < limit, nil
	})
	return list, err
}
