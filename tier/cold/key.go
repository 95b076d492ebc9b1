package cold

import (
	"fmt"
	"hash/fnv"
	"path"
	"strings"

	"firn/pkg/stream"
)

// LocalPrefix begins the keys of objects that were written where there was no
// object store.
const LocalPrefix = "local/"

// maxSegment bounds a segment of a key, in bytes: file systems take 255.
const maxSegment = 200

// IsLocal reports whether a key is of a store that was opened with Options.Local.
func IsLocal(key string) bool { return strings.HasPrefix(key, LocalPrefix) }

// SegmentKey returns a new key for the bytes [from, to) of a stream. A glob selects
// a bucket or a stream, and query engines get both as columns:
//
//	{store}/bucket={b}/stream={name}/{incarnation}-{from}-{to}-{unique}.ndjson.zst
func (s *Store) SegmentKey(n stream.Name, id stream.ID, mode stream.Mode, from, to uint64) string {
	return s.key(n, fmt.Sprintf("%s-%016d-%016d-%s.%s", id, from, to, s.opts.Unique(), ending(mode)))
}

// StreamOf returns the stream that an object of a single one was written for; ok is false
// for a pack, and for what is no key of this package.
func StreamOf(key string) (id stream.ID, ok bool) {
	dir, last := path.Split(key)
	digits, _, found := strings.Cut(last, "-")
	if !found || !strings.Contains(dir, "/stream=") {
		return 0, false
	}
	id, err := stream.ParseID(digits)
	return id, err == nil
}

// IsSnapshot reports whether a key is of a snapshot.
func IsSnapshot(key string) bool { return strings.HasSuffix(key, snapshotEnding) }

// snapshotEnding ends the keys of snapshots.
const snapshotEnding = ".snapshot"

// PackKey returns a new key for bytes of several streams of a bucket and mode:
//
//	{store}/bucket={b}/packs/{unique}.ndjson.zst
func (s *Store) PackKey(bucket string, mode stream.Mode) string {
	return fmt.Sprintf("%spacks/%s.%s", s.bucketPrefix(bucket), s.opts.Unique(), ending(mode))
}

func ending(mode stream.Mode) string {
	if mode == stream.JSON {
		return "ndjson.zst"
	}
	return "bin.zst"
}

// SnapshotKey returns a new key for a snapshot at a position.
func (s *Store) SnapshotKey(n stream.Name, id stream.ID, at uint64) string {
	return s.key(n, fmt.Sprintf("%s-%016d-%s%s", id, at, s.opts.Unique(), snapshotEnding))
}

func (s *Store) key(n stream.Name, last string) string {
	return fmt.Sprintf("%sstream=%s/%s", s.bucketPrefix(n.Bucket), escape(n.ID), last)
}

func (s *Store) bucketPrefix(bucket string) string {
	prefix := ""
	if s.opts.Local {
		prefix = LocalPrefix
	}
	return fmt.Sprintf("%s%s/bucket=%s/", prefix, s.opts.StoreID, bucket)
}

// escape writes an id in characters that every store takes in a key. Upper-case
// letters are escaped too, so that ids which differ in case alone stay apart where
// case does not count. What would be too long is cut and ends with a hash.
func escape(id string) string {
	var b strings.Builder
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			b.WriteByte(c)
		case c == '.' && i > 0 && i < len(id)-1:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "~%02x", c)
		}
	}
	e := b.String()
	if len(e) <= maxSegment {
		return e
	}
	h := fnv.New64a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s~~%016x", e[:maxSegment-18], h.Sum64())
}
