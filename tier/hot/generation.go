package hot

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Generation numbers the bases of the catalog's copies. It grows with every base: the
// fence is that of the start that made it, the number counts within it.
type Generation struct{ Fence, Number uint64 }

// String is 16 digits and 8: generations sort as text.
func (g Generation) String() string { return fmt.Sprintf("%016d-%08d", g.Fence, g.Number) }

// Compare orders generations by age.
func (g Generation) Compare(o Generation) int {
	switch {
	case g == o:
		return 0
	case g.Fence < o.Fence || g.Fence == o.Fence && g.Number < o.Number:
		return -1
	}
	return 1
}

// GenerationRecord is what the catalog knows of one generation. It is written before
// its first object: what the catalog does not know is not removed.
type GenerationRecord struct {
	Generation
	// Complete: its base is there in whole.
	Complete bool
	// SupersededAt is when a newer one was complete, ms; 0 for the newest.
	SupersededAt uint64
}

const generationVersion = 1

func keyGeneration(g Generation) []byte {
	return binary.BigEndian.AppendUint64(keyNumbered(kindGeneration, g.Fence), g.Number)
}

func (g GenerationRecord) encode() []byte {
	b := appendBool([]byte{generationVersion}, g.Complete)
	return binary.AppendUvarint(b, g.SupersededAt)
}

func decodeGeneration(key, value []byte) (GenerationRecord, error) {
	d := decoder{b: value}
	d.version(generationVersion)
	g := GenerationRecord{Complete: d.bool(), SupersededAt: d.uint()}
	if len(key) != 17 {
		d.fail()
	}
	if err := d.finish(); err != nil {
		return GenerationRecord{}, fmt.Errorf("decode generation: %w", err)
	}
	g.Generation = Generation{Fence: field(key, 1), Number: field(key, 9)}
	return g, nil
}

// Commands about generations. A copy does not hold what they change.
type (
	// BeginGeneration records that objects of a generation are about to be written.
	BeginGeneration struct{ Generation Generation }

	// CompleteGeneration records that the base of a generation is there, which
	// supersedes all older ones.
	CompleteGeneration struct{ Generation Generation }

	// ForgetGeneration drops a generation: its objects are gone.
	ForgetGeneration struct{ Generation Generation }
)

// BeginGeneration records a generation.
func (s *Store) BeginGeneration(ctx context.Context, g Generation) error {
	_, err := s.propose(ctx, BeginGeneration{Generation: g})
	return err
}

// CompleteGeneration records that a generation's base is complete.
func (s *Store) CompleteGeneration(ctx context.Context, g Generation) error {
	_, err := s.propose(ctx, CompleteGeneration{Generation: g})
	return err
}

// ForgetGeneration drops a generation whose objects are gone.
func (s *Store) ForgetGeneration(ctx context.Context, g Generation) error {
	_, err := s.propose(ctx, ForgetGeneration{Generation: g})
	return err
}

// Generations returns all generations that the catalog knows, oldest first.
func (v *View) Generations() ([]GenerationRecord, error) {
	var list []GenerationRecord
	err := v.scan([]byte{kindGeneration}, nil, func(key, value []byte) (bool, error) {
		g, err := decodeGeneration(key, value)
		list = append(list, g)
		return true, err
	})
	return list, err
}

func (t *txn) beginGeneration(c BeginGeneration) error {
	return t.set(keyGeneration(c.Generation), GenerationRecord{}.encode())
}

func (t *txn) completeGeneration(c CompleteGeneration) error {
	it, err := t.batch.NewIter(iterOptions([]byte{kindGeneration}, keyGeneration(c.Generation)))
	if err != nil {
		return err
	}
	var older []GenerationRecord
	for ok := it.First(); ok; ok = it.Next() {
		g, err := decodeGeneration(it.Key(), it.Value())
		if err != nil {
			return closeIter(it, err)
		}
		older = append(older, g)
	}
	if err := closeIter(it, nil); err != nil {
		return err
	}
	for _, g := range older {
		if g.SupersededAt != 0 {
			continue
		}
		g.SupersededAt = t.now
		if err := t.set(keyGeneration(g.Generation), g.encode()); err != nil {
			return err
		}
	}
	return t.set(keyGeneration(c.Generation), GenerationRecord{Complete: true}.encode())
}
