package hot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
)

// What the catalog remembers for who reads every object again: how far it is, and
// which objects are not what they should be. Copies of the catalog do not hold it: both
// are found out again.

// Damage is what is wrong with an object that a stream names.
type Damage byte

const (
	// Missing: the store does not have it.
	Missing Damage = 1
	// Corrupt: it has another size or fails its own checks.
	Corrupt Damage = 2
	// Differs: it is whole, but not the object that the catalog means.
	Differs Damage = 3
)

// Damages are all of them.
var Damages = [...]Damage{Missing, Corrupt, Differs}

// String is the name in metrics and logs.
func (d Damage) String() string {
	switch d {
	case Missing:
		return "missing"
	case Corrupt:
		return "damaged"
	case Differs:
		return "differs"
	}
	return fmt.Sprintf("damage %d", byte(d))
}

// Damaged is an object that is known to be damaged.
type Damaged struct {
	Object string
	Damage Damage
	Since  uint64 // ms
}

// Mark is how far the reading of all objects is. Times are ms.
type Mark struct {
	// Object is the last one that was looked at in this round, "" when there is none.
	Object string
	// Began is when this round began, 0 between two.
	Began uint64
	// Skipped: an object of this round gave no answer.
	Skipped bool
	// Whole is when the last round began in which none was skipped. Before there was
	// one it is when the first round began.
	Whole uint64
}

// Commands about objects that are read again.
type (
	// SetMark remembers how far it is.
	SetMark struct{ Mark Mark }

	// NoteDamage remembers what is wrong with an object; 0 is nothing. Errors:
	// [ErrConflict] unless the object is live, or nothing is wrong.
	NoteDamage struct {
		Object string
		Damage Damage
	}
)

// SetMark remembers how far the reading of all objects is.
func (s *Store) SetMark(ctx context.Context, m Mark) error {
	_, err := s.propose(ctx, SetMark{Mark: m})
	return err
}

// NoteDamage remembers what is wrong with an object; 0 is nothing.
func (s *Store) NoteDamage(ctx context.Context, object string, d Damage) error {
	_, err := s.propose(ctx, NoteDamage{Object: object, Damage: d})
	return err
}

// keyMark is the key of the mark; those of damaged objects begin with it.
var keyMark = []byte{kindScrub}

func keyDamaged(object string) []byte { return append([]byte{kindScrub}, object...) }

const (
	markVersion    = 1
	damagedVersion = 1
)

func (t *txn) setMark(c SetMark) error {
	b := binary.AppendUvarint([]byte{markVersion}, c.Mark.Began)
	b = appendBool(b, c.Mark.Skipped)
	b = binary.AppendUvarint(b, c.Mark.Whole)
	return t.set(keyMark, appendString(b, c.Mark.Object))
}

func (t *txn) noteDamage(c NoteDamage) error {
	if c.Damage == 0 {
		return t.delete(keyDamaged(c.Object))
	}
	o, err := t.object(c.Object)
	if err != nil {
		return err
	}
	if o == nil || o.state != Live {
		return ErrConflict
	}
	b := binary.AppendUvarint([]byte{damagedVersion, byte(c.Damage)}, t.now)
	return t.set(keyDamaged(c.Object), b)
}

// Mark returns how far the reading of all objects is; at first it is zero.
func (v *View) Mark() (Mark, error) {
	raw, err := get(v.s.snap, keyMark)
	if err != nil || raw == nil {
		return Mark{}, err
	}
	d := decoder{b: raw}
	d.version(markVersion)
	m := Mark{Began: d.uint(), Skipped: d.bool(), Whole: d.uint(), Object: d.string()}
	if err := d.finish(); err != nil {
		return Mark{}, fmt.Errorf("decode mark: %w", err)
	}
	return m, nil
}

// Damage returns what is known to be wrong with an object, 0 for nothing.
func (v *View) Damage(object string) (Damage, error) {
	raw, err := get(v.s.snap, keyDamaged(object))
	if err != nil || raw == nil {
		return 0, err
	}
	d, err := decodeDamaged(object, raw)
	return d.Damage, err
}

// Damaged returns at most limit objects after one that are known to be damaged, in
// the order of their keys. Some may be live no more.
func (v *View) Damaged(after string, limit int) ([]Damaged, error) {
	var list []Damaged
	err := v.scan(keyMark, append(keyDamaged(after), 0), func(key, value []byte) (bool, error) {
		d, err := decodeDamaged(string(key[1:]), value)
		list = append(list, d)
		return len(list) < limit, err
	})
	return list, err
}

func decodeDamaged(object string, value []byte) (Damaged, error) {
	d := decoder{b: value}
	d.version(damagedVersion)
	r := Damaged{Object: object, Damage: Damage(d.byte()), Since: d.uint()}
	if err := d.finish(); err != nil {
		return Damaged{}, fmt.Errorf("decode damage of %s: %w", object, err)
	}
	return r, nil
}

// LiveObject is an object that streams name.
type LiveObject struct {
	Key string
	// Named is how many content bytes of segments are named, or how many streams show
	// the snapshot; Size is the object's, in bytes.
	Named, Size uint64
}

// LiveObject returns an object; ok is false when no stream names it.
func (v *View) LiveObject(key string) (l LiveObject, ok bool, err error) {
	raw, err := get(v.s.snap, keyObject(key))
	if err != nil || raw == nil {
		return LiveObject{}, false, err
	}
	o, err := decodeObject(raw)
	return LiveObject{Key: key, Named: o.live, Size: o.size}, o.state == Live, err
}

// LiveObjects calls fn for the objects after one that streams name, in the order of
// their keys, until fn returns false.
func (v *View) LiveObjects(after string, fn func(LiveObject) bool) error {
	from := append(bytes.Clone(keyObject(after)), 0)
	return v.scan([]byte{kindObject}, from, func(key, value []byte) (bool, error) {
		o, err := decodeObject(value)
		if err != nil || o.state != Live {
			return true, err
		}
		return fn(LiveObject{Key: string(key[1:]), Named: o.live, Size: o.size}), nil
	})
}
