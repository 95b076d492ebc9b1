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

// objectVersion is the first byte of every object record.
const objectVersion = 1

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
}

func (o object) encode() []byte {
	b := []byte{objectVersion, byte(o.state)}
	b = binary.AppendUvarint(b, o.live)
	b = binary.AppendUvarint(b, o.size)
	return binary.AppendUvarint(b, o.due)
}

func decodeObject(b []byte) (object, error) {
	d := decoder{b: b}
	d.version(objectVersion)
	o := object{state: ObjectState(d.byte()), live: d.uint(), size: d.uint(), due: d.uint()}
	if err := d.finish(); err != nil {
		return object{}, fmt.Errorf("decode object record: %w", err)
	}
	return o, nil
}
