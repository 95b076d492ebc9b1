package backup

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/klauspost/compress/zstd"

	"firn/tier/hot"
)

// An object of a copy. Integers are big-endian.
//
//	size  field
//	   8  magic "firn.cat"
//	   2  version, 1
//	   1  kind: 1 part, 2 base, 3 delta, 4 stop
//	   1  0
//	 2+n  store id
//	   8  fence of the generation
//	   8  number of the generation
//	   8  sequence: number of the object in its generation, from 0
//	   8  sequence of the object that it follows; all ones for the first
//	   4  CRC32C at the end of that object; 0 for the first
//	   8  moment of the copy, ms since 1970
//	   8  last life that the store had given by then
//	   4  number of entries
//	   4  length of the entries before compression
//	 4+n  fields
//	   4  CRC32C of everything from the magic to here
//	      the entries, one zstd frame; nothing of a stop
//	   4  CRC32C of everything before
//
// An entry is a byte (1 set, 2 delete, 3 delete range), a key, and for the first a
// value, for the last the end of the range; each text has its length before it, as a
// varint. Keys and values are those of the hot tier. Fields are what later releases
// add: (2 bytes tag, 4 bytes length n, n bytes); unknown ones are passed over. Magic,
// version and the last CRC keep their places in all versions.
const (
	magic        = "firn.cat"
	version      = 1
	fixedHeader  = 8 + 2 + 1 + 1
	numbers      = 8 + 8 + 8 + 8 + 4 + 8 + 8 + 4 + 4
	noSequence   = ^uint64(0)
	maxObject    = 80 << 20 // of what is read, in bytes
	maxEntries   = 64 << 20 // of the entries of an object before compression, in bytes
	maxStoreName = 255
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// link names an object: what follows it holds it to that.
type link struct {
	seq uint64
	crc uint32
}

var noLink = link{seq: noSequence}

// header is what an object says of itself.
type header struct {
	name
	store   string
	prev    link
	life    uint64
	entries uint32
	length  uint32
}

// appendEntry appends the encoding of an entry.
func appendEntry(b []byte, e hot.CopyEntry) []byte {
	b = append(b, byte(e.Op))
	b = binary.AppendUvarint(b, uint64(len(e.Key)))
	b = append(b, e.Key...)
	if e.Op == hot.CopyDelete {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(e.Value)))
	return append(b, e.Value...)
}

// encode makes an object. It returns its last checksum, too.
func (h header) encode(enc *zstd.Encoder, entries []byte) ([]byte, uint32) {
	be := binary.BigEndian
	b := append(make([]byte, 0, 256+len(entries)/2), magic...)
	b = be.AppendUint16(b, version)
	b = append(b, byte(h.kind), 0)
	b = be.AppendUint16(b, uint16(len(h.store)))
	b = append(b, h.store...)
	for _, v := range [...]uint64{h.generation.Fence, h.generation.Number, h.seq, h.prev.seq} {
		b = be.AppendUint64(b, v)
	}
	b = be.AppendUint32(b, h.prev.crc)
	b = be.AppendUint64(b, h.ms)
	b = be.AppendUint64(b, h.life)
	b = be.AppendUint32(b, h.entries)
	b = be.AppendUint32(b, uint32(len(entries)))
	b = be.AppendUint32(b, 0) // no fields
	b = be.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if len(entries) > 0 {
		b = enc.EncodeAll(entries, b)
	}
	sum := crc32.Checksum(b, castagnoli)
	return be.AppendUint32(b, sum), sum
}

// object is one that was read and verified.
type object struct {
	header
	whole []byte // as it was read
	raw   []byte // the entries
	crc   uint32
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// decode reads an object. Errors: [ErrDamaged], [ErrVersion].
func decode(dec *zstd.Decoder, b []byte) (*object, error) {
	be := binary.BigEndian
	if len(b) < fixedHeader+2+numbers+4+4+4 || string(b[:8]) != magic {
		return nil, damaged("it is none, or cut short")
	}
	body, sum := b[:len(b)-4], be.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, damaged("its checksum does not match")
	}
	if v := be.Uint16(b[8:]); v != version {
		return nil, fmt.Errorf("%w: it has version %d, this release reads %d", ErrVersion, v, version)
	}
	o := &object{whole: b, crc: sum}
	o.kind = Kind(b[10])
	in := &input{b: body[fixedHeader:]}
	o.store = string(in.take(uint64(in.uint16())))
	o.generation = hot.Generation{Fence: in.uint64(), Number: in.uint64()}
	o.seq = in.uint64()
	o.prev = link{seq: in.uint64(), crc: in.uint32()}
	o.ms, o.life = in.uint64(), in.uint64()
	o.entries, o.length = in.uint32(), in.uint32()
	in.take(uint64(in.uint32())) // fields
	header := len(body) - len(in.b)
	if want := in.uint32(); in.failed || kindNames[o.kind] == "" || o.length > maxEntries ||
		crc32.Checksum(body[:header], castagnoli) != want {
		return nil, damaged("its header is malformed")
	}
	if o.length == 0 {
		if len(in.b) > 0 || o.entries > 0 {
			return nil, damaged("it has more than it says")
		}
		return o, nil
	}
	raw, err := dec.DecodeAll(in.b, make([]byte, 0, o.length))
	if err != nil || len(raw) != int(o.length) {
		return nil, damaged("its entries do not decompress: %v", err)
	}
	o.raw = raw
	return o, nil
}

// each calls fn for each entry. Key and value are valid during the call.
func (o *object) each(fn func(hot.CopyEntry) error) error {
	in := &input{b: o.raw}
	for range o.entries {
		e := hot.CopyEntry{Op: hot.CopyOp(in.uint8())}
		e.Key = in.take(in.uvarint())
		if e.Op != hot.CopyDelete {
			e.Value = in.take(in.uvarint())
		}
		if in.failed || len(e.Key) == 0 || e.Op < hot.CopySet || e.Op > hot.CopyDeleteRange {
			return damaged("an entry is malformed")
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	if len(in.b) > 0 {
		return damaged("it has more entries than it says")
	}
	return nil
}

// input takes fields off the front of b; the first one that is not there sets failed.
type input struct {
	b      []byte
	failed bool
}

func (in *input) take(n uint64) []byte {
	if in.failed || n > uint64(len(in.b)) {
		in.failed = true
		return nil
	}
	v := in.b[:n:n]
	in.b = in.b[n:]
	return v
}

func (in *input) uint8() byte {
	if v := in.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (in *input) uint16() uint16 {
	if v := in.take(2); v != nil {
		return binary.BigEndian.Uint16(v)
	}
	return 0
}

func (in *input) uint32() uint32 {
	if v := in.take(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (in *input) uint64() uint64 {
	if v := in.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (in *input) uvarint() uint64 {
	v, n := binary.Uvarint(in.b)
	if in.failed || n <= 0 {
		in.failed = true
		return 0
	}
	in.b = in.b[n:]
	return v
}
