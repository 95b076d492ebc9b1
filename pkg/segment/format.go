package segment

import (
	"encoding/binary"
	"fmt"

	"firn/pkg/stream"
)

// The descriptor, inside a skippable zstd frame. Numbers are big-endian, except
// for the frame's header, which is zstd's and little-endian.
//
//	size  field
//	   4  skippable frame magic 0x184D2A5F, little-endian
//	   4  size of what follows, little-endian
//	   8  magic "firn.seg"
//	   2  format version, 1
//	   1  content mode: 1 bytes, 2 JSON
//	   1  0
//	   4  number of entries, at least 1
//	   4  number of frames, at least 1
//	 2+n  store id
//	 2+n  bucket
//	      for each entry:
//	 2+n    stream id
//	 2+n    content type
//	   8    incarnation
//	   8    life
//	   8    created, ms
//	   8    from
//	   8    to
//	   4    first frame
//	   4    skip
//	 4+n    fields
//	      for each frame:
//	   4    compressed length
//	   4    content length
//	   4    CRC32C of the compressed frame
//	   8    time of the first append, ms
//	 4+n  fields
//	   4  CRC32C of everything from the magic to here
//
// n is the length of the text before it. Fields are what later releases add
// without a new version: a sequence of (2 bytes tag, 4 bytes length n, n bytes);
// a reader passes over tags that it does not know. What a reader must understand
// takes a new version. The magic, the version and the trailing CRC keep their
// places in all versions, so that a new object is told from a damaged one.
const (
	descriptorMagic   = "firn.seg"
	descriptorVersion = 1
	descriptorFrame   = 0x184D2A5F
	skippableHeader   = 8

	minDescriptor = 8 + 2 + 1 + 1 + 4 + 4 + 2 + 2 + 4 + 4
	minEntry      = 2 + 2 + 5*8 + 2*4 + 4
	frameSize     = 3*4 + 8
)

// appendDescriptor appends the descriptor's skippable frame.
func appendDescriptor(b []byte, d *Descriptor) []byte {
	frame := len(b)
	b = binary.LittleEndian.AppendUint32(b, descriptorFrame)
	b = binary.LittleEndian.AppendUint32(b, 0) // the size, known at the end
	start := len(b)
	be := binary.BigEndian
	b = append(b, descriptorMagic...)
	b = be.AppendUint16(b, descriptorVersion)
	b = append(b, byte(d.Mode), 0)
	b = be.AppendUint32(b, uint32(len(d.Entries)))
	b = be.AppendUint32(b, uint32(len(d.Frames)))
	b = appendString16(b, d.Store)
	b = appendString16(b, d.Bucket)
	for _, e := range d.Entries {
		b = appendString16(b, e.Stream)
		b = appendString16(b, e.ContentType)
		b = be.AppendUint64(b, uint64(e.Incarnation))
		b = be.AppendUint64(b, e.Life)
		b = be.AppendUint64(b, e.CreatedMs)
		b = be.AppendUint64(b, e.From)
		b = be.AppendUint64(b, e.To)
		b = be.AppendUint32(b, e.FirstFrame)
		b = be.AppendUint32(b, e.Skip)
		b = be.AppendUint32(b, 0) // no fields
	}
	for _, f := range d.Frames {
		b = be.AppendUint32(b, f.Length)
		b = be.AppendUint32(b, f.Content)
		b = be.AppendUint32(b, f.CRC)
		b = be.AppendUint64(b, f.TimeMs)
	}
	b = be.AppendUint32(b, 0) // no fields
	b = be.AppendUint32(b, checksum(b[start:]))
	binary.LittleEndian.PutUint32(b[frame+4:], uint32(len(b)-start))
	return b
}

func appendString16(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(s)))
	return append(b, s...)
}

// parseDescriptor reads a whole descriptor frame. Memory is bounded by a small
// multiple of len(b).
func parseDescriptor(b []byte) (*Descriptor, error) {
	if len(b) < skippableHeader+minDescriptor {
		return nil, corrupt("descriptor of %d bytes is cut short", len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b) != descriptorFrame || uint64(le.Uint32(b[4:])) != uint64(len(b)-skippableHeader) {
		return nil, corrupt("no descriptor before the seek table")
	}
	body, sum := b[skippableHeader:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	in := reader{b: body}
	if string(in.take(8)) != descriptorMagic {
		return nil, corrupt("no descriptor before the seek table")
	}
	if checksum(body) != sum {
		return nil, corrupt("descriptor checksum does not match")
	}
	if v := in.uint16(); v != descriptorVersion {
		return nil, fmt.Errorf("%w: object has version %d, this release reads %d", ErrVersion, v, descriptorVersion)
	}
	d, err := parseBody(in)
	if err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, corrupt("descriptor: %v", err)
	}
	return d, nil
}

// parseBody reads what follows the version.
func parseBody(in reader) (*Descriptor, error) {
	d := &Descriptor{Mode: stream.Mode(in.uint8())}
	reserved := in.uint8()
	entries, frames := uint64(in.uint32()), uint64(in.uint32())
	d.Store = in.string16()
	d.Bucket = in.string16()
	if reserved != 0 || entries > uint64(len(in.b))/minEntry || frames > uint64(len(in.b))/frameSize {
		return nil, corrupt("descriptor is malformed")
	}
	d.Entries = make([]Entry, entries)
	for i := range d.Entries {
		d.Entries[i] = Entry{
			Stream:      in.string16(),
			ContentType: in.string16(),
			Incarnation: stream.ID(in.uint64()),
			Life:        in.uint64(),
			CreatedMs:   in.uint64(),
			From:        in.uint64(),
			To:          in.uint64(),
			FirstFrame:  in.uint32(),
			Skip:        in.uint32(),
		}
		in.skipFields()
	}
	d.Frames = make([]Frame, frames)
	for i := range d.Frames {
		d.Frames[i] = Frame{Length: in.uint32(), Content: in.uint32(), CRC: in.uint32(), TimeMs: in.uint64()}
	}
	in.skipFields()
	if in.failed || len(in.b) > 0 {
		return nil, corrupt("descriptor is malformed")
	}
	return d, nil
}

// skipFields passes over a section of fields, of which version 1 knows none.
func (r *reader) skipFields() {
	section := reader{b: r.take(uint64(r.uint32()))}
	for len(section.b) > 0 && !section.failed {
		section.uint16()
		section.take(uint64(section.uint32()))
	}
	r.failed = r.failed || section.failed
}
