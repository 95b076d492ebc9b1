package verify

import (
	"bytes"
	"encoding/binary"
	"time"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// version is the first byte of every record this release writes.
const version = 1

// input takes fields off the front of b; the first one that is not there sets bad.
type input struct {
	b   []byte
	bad bool
}

func (in *input) take(n uint64) []byte {
	if in.bad || n > uint64(len(in.b)) {
		in.bad = true
		return nil
	}
	v := in.b[:n]
	in.b = in.b[n:]
	return v
}

func (in *input) byte() byte {
	if v := in.take(1); v != nil {
		return v[0]
	}
	return 0
}

// flag takes a byte that is 0 or 1.
func (in *input) flag() bool {
	v := in.byte()
	in.bad = in.bad || v > 1
	return v == 1
}

func (in *input) uvarint() uint64 {
	v, n := binary.Uvarint(in.b)
	if in.bad || n <= 0 {
		in.bad = true
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) varint() int64 {
	v, n := binary.Varint(in.b)
	if in.bad || n <= 0 {
		in.bad = true
		return 0
	}
	in.b = in.b[n:]
	return v
}

func (in *input) uint64() uint64 {
	if v := in.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (in *input) id() stream.ID { return stream.ID(in.uint64()) }
func (in *input) text() string  { return string(in.take(in.uvarint())) }

// rest takes all that is left, as text.
func (in *input) rest() string { return string(in.take(uint64(len(in.b)))) }

func (in *input) name() stream.Name { return stream.Name{Bucket: in.text(), ID: in.text()} }

// record begins a value that has a version.
func record(b []byte) *input {
	in := &input{b: b}
	in.bad = in.byte() != version || in.bad
	return in
}

// versions begins a value whose version is 1 or 2, and returns which.
func versions(b []byte) (*input, byte) {
	in := &input{b: b}
	v := in.byte()
	in.bad = in.bad || v < version || v > 2
	return in, v
}

// done reports whether all was there and nothing is left.
func (in *input) done() bool { return !in.bad && len(in.b) == 0 }

// add takes one key of the store into the catalog.
func (c *Catalog) add(key, value []byte, o Options) error {
	k, v := &input{b: key[1:]}, record(value)
	switch key[0] {
	case 'm':
		return c.addMeta(k.rest(), value)
	case 'b':
		c.Buckets[k.rest()] = Bucket{Created: v.uvarint(), Listed: v.uvarint(), Names: v.uvarint()}
	case 'c':
		g := Generation{Fence: k.uint64(), Number: k.uint64(), Complete: v.flag(), SupersededAt: v.uvarint()}
		c.Generations = append(c.Generations, g)
	case 'e':
		c.addScrub(k.rest(), v)
	case 'n':
		bucket, id, _ := bytes.Cut(key[1:], []byte{0})
		v = &input{b: value}
		c.Names[stream.Name{Bucket: string(bucket), ID: string(id)}] = v.id()
		k.rest()
	case 's':
		v = c.addStream(k.id(), value)
	case 'p':
		id := k.id()
		if c.Producers[id] == nil {
			c.Producers[id] = make(map[string]stream.ProducerState)
		}
		c.Producers[id][k.rest()] = stream.ProducerState{Epoch: v.uvarint(), Seq: v.uvarint()}
	case 'd':
		id, from := k.id(), k.uint64()
		ms, payload := v.uint64(), v.take(uint64(len(v.b)))
		c.Values[id] = append(c.Values[id], Value{From: from, To: from + uint64(len(payload)), Ms: ms})
		if o.Value != nil && !v.bad {
			if err := o.Value(id, from, payload); err != nil {
				return err
			}
		}
	case 'g':
		id, from := k.id(), k.uint64()
		v = &input{}
		ref, err := segment.ParseRef(value)
		v.bad = err != nil || ref.From != from
		c.Segments[id] = append(c.Segments[id], ref)
	case 'w':
		scope, id, _ := bytes.Cut(key[1:], []byte{0})
		k.rest()
		v = c.addSubscription(string(scope), string(id), value)
	case 'l':
		number := k.uint64()
		bucket, id, _ := bytes.Cut(k.take(uint64(len(k.b))), []byte{0})
		c.addLink(number, stream.Name{Bucket: string(bucket), ID: string(id)}, v)
	case 'k':
		c.SigningKeys = append(c.SigningKeys, SigningKey{
			Number: k.uint64(), CreatedAt: v.uvarint(), RetiredAt: v.uvarint(), Seed: v.text(),
		})
	case 'o':
		v = c.addObject(k.rest(), value)
	default:
		v = c.addIndex(key[0], k, value)
	}
	if !k.done() || !v.done() {
		c.report(0, "key %q does not have the form that this release writes", key)
	}
	return nil
}

// addIndex takes an entry of an index; it returns what is to be empty of its value.
func (c *Catalog) addIndex(kind byte, k *input, value []byte) *input {
	v := &input{b: value}
	switch kind {
	case 'f':
		c.Forks = append(c.Forks, ForkLink{Source: k.id(), Need: k.uint64(), Fork: k.id()})
	case 't':
		c.Trim[k.id()] = true
	case 'r':
		c.Ready[k.id()] = true
	case 'j':
		c.Merge[k.id()] = true
	case 'v':
		c.Sparse[k.rest()] = true
	case 'q':
		c.Queue = append(c.Queue, Queued{Due: k.uint64(), Object: k.rest()})
	case 'u':
		c.Unsealed = append(c.Unsealed, Timed{Ms: k.uint64(), ID: k.id()})
	case 'x':
		c.Expiry = append(c.Expiry, Timed{Ms: k.uint64(), ID: k.id()})
	case 'h':
		c.Held = append(c.Held, Held{Ms: k.uint64(), ID: k.id(), From: k.uint64(), To: v.uint64()})
	default:
		v.bad = true
	}
	return v
}

func (c *Catalog) addMeta(name string, value []byte) error {
	switch name {
	case "format":
		c.Format = string(value)
	case "store":
		c.StoreID = string(value)
	case "state":
		v := record(value)
		c.State = State{Life: v.uvarint(), Streams: v.uvarint(), Hot: v.uvarint(), Unsealed: v.uvarint(), Fence: v.uvarint()}
		if !v.done() {
			c.report(0, "store state is malformed")
		}
	default:
		c.report(0, "unknown meta key %q", name)
	}
	return nil
}

// addScrub takes what is remembered by who reads all objects again: how far it is, or an
// object that is known to be damaged. It may be live no more.
func (c *Catalog) addScrub(object string, v *input) {
	if object == "" {
		_, _, _, _ = v.uvarint(), v.flag(), v.uvarint(), v.text()
		return
	}
	damage := v.byte()
	v.bad = v.bad || damage < 1 || damage > 3
	v.uvarint()
}

// addObject takes an object record. Version 1 was of objects that hold one thing.
func (c *Catalog) addObject(key string, value []byte) *input {
	v, version := versions(value)
	o := Object{State: v.byte(), Live: v.uvarint(), Size: v.uvarint(), Due: v.uvarint()}
	if version > 1 {
		o.Content, o.Keep = v.uvarint(), v.uvarint()
	}
	c.Objects[key] = o
	return v
}

// addStream takes a stream record. Version 1 had no former lives.
func (c *Catalog) addStream(id stream.ID, value []byte) *input {
	v, version := versions(value)
	s := v.stream()
	if version > 1 {
		for n := v.uvarint(); n > 0 && !v.bad; n-- {
			s.Former = append(s.Former, stream.Former{Life: v.uvarint(), Upto: v.uvarint()})
		}
	}
	c.Streams[id] = s
	return v
}

func (in *input) stream() *Stream {
	s := &Stream{
		Name: in.name(), Life: in.uvarint(), ContentType: in.text(), Mode: stream.Mode(in.byte()),
		CreatedAt: in.uvarint(), LastWrite: in.uvarint(), Lifetime: in.lifetime(), Asked: in.lifetime(),
		Deadline: in.uvarint(), Closed: in.flag(),
	}
	if in.flag() {
		s.Closer = &stream.Producer{ID: in.text(), Epoch: in.uvarint(), Seq: in.uvarint()}
	}
	s.Deleted = in.flag()
	if in.flag() {
		seq := in.text()
		s.Seq = &seq
	}
	s.Producers = in.uvarint()
	s.Base, s.Floor, s.Cut = in.uvarint(), in.uvarint(), in.uvarint()
	s.Sealed, s.Tail = in.uvarint(), in.uvarint()
	s.Earliest, s.Need, s.Segments = in.uvarint(), in.uvarint(), in.uvarint()
	s.UnsealedSince, s.Forks = in.uvarint(), in.uvarint()
	s.Ready = in.flag()
	if in.flag() {
		s.Fork = &Fork{Source: stream.ID(in.uvarint()), From: in.name(), Anchor: in.uvarint(), SubOffset: in.uvarint()}
	}
	if in.flag() {
		s.Snapshot = &Snapshot{Position: in.uvarint(), Object: in.text(), Size: in.uvarint(), ContentType: in.text(), CRC: in.uvarint()}
	}
	return s
}

func (in *input) lifetime() stream.Lifetime {
	switch in.byte() {
	case 0:
		return stream.Lifetime{}
	case 1:
		return stream.Lifetime{Sliding: true, TTL: in.uvarint()}
	case 2:
		sec := in.varint()
		return stream.Lifetime{At: time.Unix(sec, int64(in.uvarint())).UTC()}
	}
	in.bad = true
	return stream.Lifetime{}
}
