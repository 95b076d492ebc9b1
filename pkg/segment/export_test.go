package segment

// AppendTail lets tests build objects that the writer does not make: descriptors
// that lie.
func AppendTail(b []byte, d *Descriptor) []byte {
	start := len(b)
	b = appendDescriptor(b, d)
	return appendSeekTable(b, d.Frames, len(b)-start)
}

// AppendDescriptor is the descriptor's frame alone.
func AppendDescriptor(b []byte, d *Descriptor) []byte { return appendDescriptor(b, d) }

// AppendSeekTable is the seek table alone, for a descriptor frame of a given size.
func AppendSeekTable(b []byte, frames []Frame, descriptor int) []byte {
	return appendSeekTable(b, frames, descriptor)
}

// Checksum is the CRC32C that frames and descriptors carry.
func Checksum(b []byte) uint32 { return checksum(b) }

// ParseDescriptor is the inverse of AppendDescriptor.
func ParseDescriptor(b []byte) (*Descriptor, error) { return parseDescriptor(b) }
