package hot

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"firn/pkg/stream"
)

// recordVersion is the first byte of every stream record that is written. Those of
// version 1, which had no former lives, are read.
const recordVersion = 2

// never is the position that no stream reaches: nothing is needed.
const never = math.MaxUint64

// Record is what the catalog knows of one incarnation. Published records are
// immutable: a command changes a copy. Times are milliseconds since 1970.
type Record struct {
	ID   stream.ID
	Name stream.Name
	// Life is the first half of the stream's offsets; a fork has its source's.
	Life uint64
	// Former are the lives before the last times that the store was rebuilt.
	Former      []stream.Former
	ContentType string
	Mode        stream.Mode
	CreatedAt   uint64
	LastWrite   uint64

	// Lifetime is in force: asked for, or inherited by a fork. Asked is what the
	// creator's request said, for the comparison with a repeated one.
	Lifetime stream.Lifetime
	Asked    stream.Lifetime
	// Deadline is when the stream expires at the latest, 0 for never. Of a sliding
	// lifetime it leads the true deadline (see lifetime.go).
	Deadline uint64

	// Closed, and by which producer if by one (B§5.2.1).
	Closed bool
	Closer *stream.Producer
	// Deleted: gone for clients, kept for its forks (B§5.4).
	Deleted bool
	// Seq is the last Stream-Seq, nil before the first.
	Seq *string
	// Producers counts the producer ids that the stream knows.
	Producers uint64

	Marks
	// Earliest is the lowest position that clients may read.
	Earliest uint64
	// Need is the lowest position that this stream or any fork below it may read;
	// never when none does.
	Need uint64
	// Segments counts the catalog's segments of this stream.
	Segments uint64
	// UnsealedSince is the append time of the oldest unsealed byte, 0 without any.
	UnsealedSince uint64
	// Ready: the stream is in the index of those to seal. It is stored because the
	// target that it was measured by is a setting.
	Ready bool

	// Fork is nil for an ordinary stream. Forks counts the direct forks that exist.
	Fork  *Fork
	Forks uint64

	// Snapshot is the visible one, or nil.
	Snapshot *Snapshot
}

// Marks are the physical positions of a stream. See the package comment.
type Marks struct {
	Base, Floor, Cut, Sealed, Tail uint64
}

// Fork is where a fork left its source. The position is the record's Base.
type Fork struct {
	Source stream.ID
	// What the creator asked for: the source's name, the anchor and the sub-offset.
	From      stream.Name
	Anchor    uint64
	SubOffset uint64
}

// Snapshot is a published snapshot (X§2).
type Snapshot struct {
	Position    uint64
	Object      string
	Size        int64
	ContentType string
	// CRC is the CRC-32C of the blob.
	CRC uint32
}

// TailOffset is the offset of the tail.
func (r *Record) TailOffset() stream.Offset { return r.Offset(r.Tail) }

// Offset is the offset of a position.
func (r *Record) Offset(pos uint64) stream.Offset {
	return stream.Offset{Life: r.Life, Position: pos}
}

// Lives are what offsets of the stream are resolved against.
func (r *Record) Lives() stream.Lives { return stream.Lives{Life: r.Life, Former: r.Former} }

// Unsealed is the number of bytes that only the hot tier has.
func (r *Record) Unsealed() uint64 { return r.Tail - r.Sealed }

// Hot is the number of bytes whose hot copy is kept.
func (r *Record) Hot() uint64 { return r.Tail - r.Cut }

func (r *Record) clone() *Record {
	c := *r
	return &c
}

func (r *Record) encode(b []byte) []byte {
	b = append(b, recordVersion)
	b = appendString(b, r.Name.Bucket)
	b = appendString(b, r.Name.ID)
	b = binary.AppendUvarint(b, r.Life)
	b = appendString(b, r.ContentType)
	b = append(b, byte(r.Mode))
	b = binary.AppendUvarint(b, r.CreatedAt)
	b = binary.AppendUvarint(b, r.LastWrite)
	b = appendLifetime(b, r.Lifetime)
	b = appendLifetime(b, r.Asked)
	b = binary.AppendUvarint(b, r.Deadline)
	b = appendBool(b, r.Closed)
	b = appendBool(b, r.Closer != nil)
	if c := r.Closer; c != nil {
		b = appendString(b, c.ID)
		b = binary.AppendUvarint(b, c.Epoch)
		b = binary.AppendUvarint(b, c.Seq)
	}
	b = appendBool(b, r.Deleted)
	b = appendBool(b, r.Seq != nil)
	if r.Seq != nil {
		b = appendString(b, *r.Seq)
	}
	b = binary.AppendUvarint(b, r.Producers)
	for _, v := range [...]uint64{r.Base, r.Floor, r.Cut, r.Sealed, r.Tail, r.Earliest, r.Need, r.Segments, r.UnsealedSince, r.Forks} {
		b = binary.AppendUvarint(b, v)
	}
	b = appendBool(b, r.Ready)
	b = appendBool(b, r.Fork != nil)
	if f := r.Fork; f != nil {
		b = binary.AppendUvarint(b, uint64(f.Source))
		b = appendString(b, f.From.Bucket)
		b = appendString(b, f.From.ID)
		b = binary.AppendUvarint(b, f.Anchor)
		b = binary.AppendUvarint(b, f.SubOffset)
	}
	b = appendBool(b, r.Snapshot != nil)
	if s := r.Snapshot; s != nil {
		b = binary.AppendUvarint(b, s.Position)
		b = appendString(b, s.Object)
		b = binary.AppendUvarint(b, uint64(s.Size))
		b = appendString(b, s.ContentType)
		b = binary.AppendUvarint(b, uint64(s.CRC))
	}
	b = binary.AppendUvarint(b, uint64(len(r.Former)))
	for _, f := range r.Former {
		b = binary.AppendUvarint(b, f.Life)
		b = binary.AppendUvarint(b, f.Upto)
	}
	return b
}

func decodeRecord(id stream.ID, b []byte) (*Record, error) {
	d := decoder{b: b}
	r := &Record{ID: id}
	version := d.versions(1, recordVersion)
	r.Name = stream.Name{Bucket: d.string(), ID: d.string()}
	r.Life = d.uint()
	r.ContentType = d.string()
	r.Mode = stream.Mode(d.byte())
	r.CreatedAt = d.uint()
	r.LastWrite = d.uint()
	r.Lifetime = d.lifetime()
	r.Asked = d.lifetime()
	r.Deadline = d.uint()
	r.Closed = d.bool()
	if d.bool() {
		r.Closer = &stream.Producer{ID: d.string(), Epoch: d.uint(), Seq: d.uint()}
	}
	r.Deleted = d.bool()
	if d.bool() {
		s := d.string()
		r.Seq = &s
	}
	r.Producers = d.uint()
	for _, v := range [...]*uint64{&r.Base, &r.Floor, &r.Cut, &r.Sealed, &r.Tail, &r.Earliest, &r.Need, &r.Segments, &r.UnsealedSince, &r.Forks} {
		*v = d.uint()
	}
	r.Ready = d.bool()
	if d.bool() {
		r.Fork = &Fork{
			Source: stream.ID(d.uint()),
			From:   stream.Name{Bucket: d.string(), ID: d.string()},
			Anchor: d.uint(), SubOffset: d.uint(),
		}
	}
	if d.bool() {
		r.Snapshot = &Snapshot{
			Position: d.uint(), Object: d.string(), Size: int64(d.uint()),
			ContentType: d.string(), CRC: uint32(d.uint()),
		}
	}
	if version > 1 {
		for n := d.uint(); n > 0 && d.err == nil; n-- {
			r.Former = append(r.Former, stream.Former{Life: d.uint(), Upto: d.uint()})
		}
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("decode stream record %s: %w", id, err)
	}
	return r, nil
}

func appendLifetime(b []byte, l stream.Lifetime) []byte {
	switch {
	case l.Sliding:
		b = append(b, 1)
		return binary.AppendUvarint(b, l.TTL)
	case !l.At.IsZero():
		b = append(b, 2)
		b = binary.AppendVarint(b, l.At.Unix())
		return binary.AppendUvarint(b, uint64(l.At.Nanosecond()))
	}
	return append(b, 0)
}

func (d *decoder) lifetime() stream.Lifetime {
	switch d.byte() {
	case 0:
	case 1:
		return stream.Lifetime{Sliding: true, TTL: d.uint()}
	case 2:
		sec, n := binary.Varint(d.b)
		if n <= 0 {
			d.fail()
			break
		}
		d.b = d.b[n:]
		return stream.Lifetime{At: time.Unix(sec, int64(d.uint())).UTC()}
	default:
		d.fail()
	}
	return stream.Lifetime{}
}
