package hot

import (
	"encoding/binary"
	"fmt"
)

// ObjectState is where an object stands in its life. Only the catalog decides
// about an object: one that it does not know is never touched.
type ObjectState byte

const (
	// Intended: it is about to be written, or was and is not named yet.
	Intended ObjectState = 1
	// Live: a stream names it.
	Live ObjectState = 2
	// Retired: no stream names it; it may be removed when it is due.
	Retired ObjectState = 3
)

// objectVersion is the first byte of every object record that is written. Those of
// version 1, of objects that hold one segment or snapshot, are read.
const objectVersion = 2

// object is the catalog's record of one object.
type object struct {
	state ObjectState
	// live counts what still names the object: content bytes of segments, or one
	// for each stream that shows a snapshot.
	live uint64
	// size is its length in the store, 0 before it is live.
	size uint64
	// due is the time of its entry in the queue, 0 when it has none.
	due uint64
	// content is how many content bytes of segments it holds, named or not; 0 in
	// records of version 1.
	content uint64
	// keep is the time before which a live object must not be removed, because of
	// what does not name it any more: a reader, or the history of a stream, may. It is
	// never for history that is kept for ever, and 0 if nothing was dropped yet.
	keep uint64
}

// sparse reports whether the object is worth being rewritten: it holds more content
// that nothing names than content that is named. What is kept for ever frees nothing.
func (o object) sparse() bool {
	return o.state == Live && 2*o.live < o.content && o.keep != never
}

func (o object) encode() []byte {
	b := []byte{objectVersion, byte(o.state)}
	b = binary.AppendUvarint(b, o.live)
	for _, v := range [...]uint64{o.size, o.due, o.content, o.keep} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func decodeObject(b []byte) (object, error) {
	d := decoder{b: b}
	version := d.versions(1, objectVersion)
	o := object{state: ObjectState(d.byte()), live: d.uint(), size: d.uint(), due: d.uint()}
	if version > 1 {
		o.content, o.keep = d.uint(), d.uint()
	}
	if err := d.finish(); err != nil {
		return object{}, fmt.Errorf("decode object record: %w", err)
	}
	return o, nil
}
