package segment

import "encoding/binary"

// The seek table of the Zstandard Seekable Format, version 0.1.0
// (contrib/seekable_format/zstd_seekable_compression_format.md in the zstd
// repository), without the optional checksums: every frame carries that very
// checksum itself. Numbers are little-endian.
//
//	size  field
//	   4  skippable frame magic 0x184D2A5E
//	   4  size of what follows
//	      for each frame of the object, in order:
//	   4    compressed length
//	   4    content length; 0 for a skippable frame
//	   4  number of frames listed
//	   1  0
//	   4  magic 0x8F92EAB1
//
// The descriptor is a frame of the object and so the last one listed: the lengths
// add up to where the table begins, and a reader of the last 17 bytes knows how
// far back the descriptor begins.
const (
	seekTableFrame = 0x184D2A5E
	seekTableMagic = 0x8F92EAB1
	seekEntry      = 8
	seekFooter     = 9
)

func appendSeekTable(b []byte, frames []Frame, descriptor int) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, seekTableFrame)
	b = le.AppendUint32(b, uint32((len(frames)+1)*seekEntry+seekFooter))
	for _, f := range frames {
		b = le.AppendUint32(b, f.Length)
		b = le.AppendUint32(b, f.Content)
	}
	b = le.AppendUint32(b, uint32(descriptor))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint32(b, uint32(len(frames)+1))
	b = append(b, 0)
	return le.AppendUint32(b, seekTableMagic)
}

// seekTableEnd is what the last bytes of an object tell about its tail.
type seekTableEnd struct {
	table      int64 // size of the seek table, in bytes
	descriptor int64 // size of the descriptor's frame, in bytes
}

// parseSeekTableEnd reads the last entry and the footer, the last
// seekEntry+seekFooter bytes of b.
func parseSeekTableEnd(b []byte) (seekTableEnd, error) {
	le := binary.LittleEndian
	footer := b[len(b)-seekFooter:]
	if le.Uint32(footer[5:]) != seekTableMagic {
		return seekTableEnd{}, corrupt("object does not end with a seek table")
	}
	if footer[4] != 0 {
		return seekTableEnd{}, corrupt("seek table has unknown flags %#x", footer[4])
	}
	n := le.Uint32(footer)
	if n < 2 || n > MaxFrames+1 {
		return seekTableEnd{}, corrupt("seek table lists %d frames", n)
	}
	last := b[len(b)-seekFooter-seekEntry:]
	if le.Uint32(last[4:]) != 0 {
		return seekTableEnd{}, corrupt("seek table does not end with the descriptor")
	}
	return seekTableEnd{
		table:      skippableHeader + int64(n)*seekEntry + seekFooter,
		descriptor: int64(le.Uint32(last)),
	}, nil
}

// checkSeekTable compares a whole seek table with the frames of the descriptor.
func checkSeekTable(b []byte, frames []Frame) error {
	le := binary.LittleEndian
	if le.Uint32(b) != seekTableFrame || uint64(le.Uint32(b[4:])) != uint64(len(b)-skippableHeader) {
		return corrupt("seek table is malformed")
	}
	entries := b[skippableHeader : len(b)-seekFooter]
	if len(entries)/seekEntry != len(frames)+1 {
		return corrupt("seek table lists %d frames, the descriptor %d", len(entries)/seekEntry-1, len(frames))
	}
	for i, f := range frames {
		e := entries[i*seekEntry:]
		if le.Uint32(e) != f.Length || le.Uint32(e[4:]) != f.Content {
			return corrupt("seek table and descriptor differ on frame %d", i)
		}
	}
	return nil
}
