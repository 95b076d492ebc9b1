package verify

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Never is the position that no stream reaches: nothing is needed.
const Never = ^uint64(0)

// Catalog is the whole hot tier as it is stored, without the bytes of streams.
// Times are milliseconds since 1970. Lists are in the order of their keys.
type Catalog struct {
	Format, StoreID string
	State           State

	Buckets   map[string]Bucket
	Names     map[stream.Name]stream.ID
	Streams   map[stream.ID]*Stream
	Producers map[stream.ID]map[string]stream.ProducerState
	Values    map[stream.ID][]Value
	Segments  map[stream.ID][]segment.Ref
	Objects   map[string]Object
	// Subscriptions are by their number, as are the links.
	Subscriptions map[uint64]Subscription
	Links         map[uint64]map[stream.Name]Link
	SigningKeys   []SigningKey
	// Generations are those of the catalog's copies.
	Generations []Generation

	// The indexes.
	Forks    []ForkLink
	Trim     map[stream.ID]bool
	Ready    map[stream.ID]bool
	Merge    map[stream.ID]bool
	Sparse   map[string]bool
	Queue    []Queued
	Unsealed []Timed
	Expiry   []Timed
	Held     []Held

	problems []Problem
}

// State is the store-wide record.
type State struct{ Life, Streams, Hot, Unsealed, Fence uint64 }

// Bucket is a bucket's record.
type Bucket struct{ Created, Listed, Names uint64 }

// Generation is the record of one generation of copies of the catalog.
type Generation struct {
	Fence, Number uint64
	Complete      bool
	SupersededAt  uint64
}

// Stream is the record of one incarnation.
type Stream struct {
	Name                 stream.Name
	Life                 uint64
	Former               []stream.Former
	ContentType          string
	Mode                 stream.Mode
	CreatedAt, LastWrite uint64
	Lifetime, Asked      stream.Lifetime
	Deadline             uint64
	Closed               bool
	Closer               *stream.Producer
	Deleted              bool
	Seq                  *string
	Producers            uint64
	Base, Floor, Cut     uint64
	Sealed, Tail         uint64
	Earliest, Need       uint64
	Segments             uint64
	UnsealedSince, Forks uint64
	Ready                bool
	Fork                 *Fork
	Snapshot             *Snapshot
}

// Fork is where a fork left its source.
type Fork struct {
	Source    stream.ID
	From      stream.Name
	Anchor    uint64
	SubOffset uint64
}

// Snapshot is a published snapshot.
type Snapshot struct {
	Position    uint64
	Object      string
	Size        uint64
	ContentType string
	CRC         uint64
}

// Value is one data value: positions [From, To) and when they were appended.
type Value struct{ From, To, Ms uint64 }

// Object is the record of an object. Its states are those below.
type Object struct {
	State           byte
	Live, Size, Due uint64
	// Content is what segments it holds, named or not; Keep the time before which a
	// live one must not be removed.
	Content, Keep uint64
}

// sparse objects are those of which less than half is named; what is kept for ever is
// not worth being written again.
func (o Object) sparse() bool { return o.State == Live && 2*o.Live < o.Content && o.Keep != Never }

// States of an object.
const (
	Intended byte = 1
	Live     byte = 2
	Retired  byte = 3
)

// ForkLink is an entry of the index of forks by what they need of their source.
type ForkLink struct {
	Source stream.ID
	Need   uint64
	Fork   stream.ID
}

// Queued is an entry of the queue of objects to look at.
type Queued struct {
	Due    uint64
	Object string
}

// Timed is an entry of an index by time.
type Timed struct {
	Ms uint64
	ID stream.ID
}

// Held is an entry of the index of segments whose hot copy is kept.
type Held struct {
	Ms       uint64
	ID       stream.ID
	From, To uint64
}

// Options configure [Load]. The zero Options are usable.
type Options struct {
	// Value is called with every data value, streams and positions ascending. The
	// bytes are valid during the call. An error ends the walk.
	Value func(id stream.ID, from uint64, payload []byte) error
}

// Load reads a whole store. What cannot be decoded is a problem that
// [Catalog.Check] reports; the error is that of the reader or of o.Value. It takes
// memory for every key of the store.
func Load(r pebble.Reader, o Options) (*Catalog, error) {
	c := &Catalog{
		Buckets:   make(map[string]Bucket),
		Names:     make(map[stream.Name]stream.ID),
		Streams:   make(map[stream.ID]*Stream),
		Producers: make(map[stream.ID]map[string]stream.ProducerState),
		Values:    make(map[stream.ID][]Value),
		Segments:  make(map[stream.ID][]segment.Ref),
		Objects:   make(map[string]Object),
		Trim:      make(map[stream.ID]bool),
		Ready:     make(map[stream.ID]bool),
		Merge:     make(map[stream.ID]bool),
		Sparse:    make(map[string]bool),

		Subscriptions: make(map[uint64]Subscription),
		Links:         make(map[uint64]map[stream.Name]Link),
	}
	for _, kind := range kinds {
		err := c.loadKind(r, kind, o)
		if pebble.IsCorruptionError(err) {
			c.report(0, "keys %q cannot all be read: %v", kind, err)
		} else if err != nil {
			return nil, fmt.Errorf("read store: %w", err)
		}
	}
	return c, nil
}

// kinds are the first bytes of keys, in ranges: what lies between those that are known
// is read too, and reported.
var kinds = []keyRange{{0, 'b'}, {'b', 'd'}, {'d', 'e'}, {'e', 'g'}, {'g', 'h'}, {'h', 'n'}, {'n', 'o'}, {'o', 'p'}, {'p', 'q'}, {'q', 's'}, {'s', 't'}, {'t', 255}}

// keyRange is the keys whose first byte is in [from, to).
type keyRange struct{ from, to byte }

// String shows the first bytes.
func (k keyRange) String() string { return fmt.Sprintf("%c to %c", k.from, k.to-1) }

// loadKind reads one range of keys, so that damage in one keeps none of the others
// from being read.
func (c *Catalog) loadKind(r pebble.Reader, k keyRange, o Options) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: []byte{k.from}, UpperBound: []byte{k.to}})
	if err != nil {
		return err
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := c.add(it.Key(), value, o); err != nil {
			return err
		}
	}
	return it.Error()
}
