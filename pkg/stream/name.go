package stream

import (
	"hash/fnv"
	"strings"
	"unicode/utf8"
)

const (
	// DefaultBucket holds the streams of the flat surface. It exists from the
	// first start and cannot be deleted.
	DefaultBucket = "default"
	// MaxKey bounds "{bucket}/{stream}" on the bucketed surface, in bytes (X§1.1).
	MaxKey = 122
	// MaxPath bounds a stream's path on the flat surface, in bytes.
	MaxPath = 1024

	// reservedSegment is the first segment of the control APIs (B§6).
	reservedSegment = "__ds"
	// reservedID is the listing endpoint of a bucket (X§1.1).
	reservedID = "streams"
)

// Name is the address of a stream: a bucket and an id local to it. The id is raw
// bytes of valid UTF-8, never normalised. Ids of the default bucket may hold
// slashes when they were made on the flat surface.
type Name struct {
	Bucket string
	ID     string
}

// String returns "{bucket}/{id}".
func (n Name) String() string { return n.Bucket + "/" + n.ID }

// Listed reports whether the name is valid on the bucketed surface. Only such
// names are listed and counted there.
func (n Name) Listed() bool {
	return n.ID != reservedID && checkID(n.ID) == nil && len(n.Bucket)+1+len(n.ID) <= MaxKey
}

// slot is frozen: it is part of the key layout (docs/format.md).
func (n Name) slot() uint16 {
	h := fnv.New64a()
	h.Write([]byte(n.Bucket))
	h.Write([]byte{0})
	h.Write([]byte(n.ID))
	return uint16(h.Sum64() >> 48)
}

// CheckBucket returns [ErrBucketName] unless s matches ^[a-z0-9_-]{4,64}$ and is
// not reserved (X§1.1, B§6).
func CheckBucket(s string) error {
	if len(s) < 4 || len(s) > 64 || s == reservedSegment {
		return ErrBucketName
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return ErrBucketName
		}
	}
	return nil
}

// ParseName checks a bucket and a decoded stream id of the bucketed surface
// (X§1.1). Errors: [ErrBucketName], [ErrStreamName].
func ParseName(bucket, id string) (Name, error) {
	if err := CheckBucket(bucket); err != nil {
		return Name{}, err
	}
	n := Name{Bucket: bucket, ID: id}
	if !n.Listed() {
		return Name{}, ErrStreamName
	}
	return n, nil
}

// ParsePath checks the decoded segments of a path on the flat surface, at most
// [MaxPath] bytes when joined by slashes. Errors: [ErrStreamName].
func ParsePath(segments []string) (Name, error) {
	if len(segments) == 0 || segments[0] == reservedSegment {
		return Name{}, ErrStreamName
	}
	for _, s := range segments {
		if err := checkID(s); err != nil {
			return Name{}, err
		}
	}
	n := Name{Bucket: DefaultBucket, ID: strings.Join(segments, "/")}
	if len(n.ID) > MaxPath {
		return Name{}, ErrStreamName
	}
	return n, nil
}

// checkID applies the rules that every id and every path segment obeys; lengths
// are the callers'.
func checkID(s string) error {
	if s == "" || strings.ContainsAny(s, "/\x00") || strings.Contains(s, "..") || !utf8.ValidString(s) {
		return ErrStreamName
	}
	return nil
}
