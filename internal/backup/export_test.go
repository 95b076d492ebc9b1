package backup

import (
	"encoding/binary"
	"hash/crc32"
)

// WithVersion returns an object with another version and a checksum that is right.
func WithVersion(b []byte, v uint16) []byte {
	b = append([]byte{}, b...)
	binary.BigEndian.PutUint16(b[8:], v)
	return resum(b)
}

// WithStore returns an object that says it is of another store.
func WithStore(b []byte, store string) []byte {
	b = append([]byte{}, b...)
	copy(b[fixedHeader+2:], store)
	header := fixedHeader + 2 + len(store) + numbers + 4
	binary.BigEndian.PutUint32(b[header:], crc32.Checksum(b[:header], castagnoli))
	return resum(b)
}

func resum(b []byte) []byte {
	n := len(b) - 4
	binary.BigEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli))
	return b
}
