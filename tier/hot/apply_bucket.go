package hot

import (
	"encoding/binary"
	"fmt"

	"firn/pkg/stream"
)

// bucket is the catalog's record of a bucket.
type bucket struct {
	created uint64 // ms
	listed  uint64 // streams that a listing shows
	names   uint64 // names in use, those of hidden streams too
}

const bucketVersion = 1

func (b bucket) encode() []byte {
	v := []byte{bucketVersion}
	v = binary.AppendUvarint(v, b.created)
	v = binary.AppendUvarint(v, b.listed)
	return binary.AppendUvarint(v, b.names)
}

func decodeBucket(v []byte) (*bucket, error) {
	d := decoder{b: v}
	d.version(bucketVersion)
	b := &bucket{created: d.uint(), listed: d.uint(), names: d.uint()}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("decode bucket record: %w", err)
	}
	return b, nil
}

// bucket returns nil when there is none.
func (t *txn) bucket(name string) (*bucket, error) {
	v, err := get(t.batch, keyBucket(name))
	if err != nil || v == nil {
		return nil, err
	}
	return decodeBucket(v)
}

func (t *txn) createBucket(c CreateBucket) error {
	b, err := t.bucket(c.Bucket)
	if err != nil {
		return err
	}
	if b != nil {
		return stream.ErrBucketExists
	}
	return t.set(keyBucket(c.Bucket), bucket{created: t.now}.encode())
}

func (t *txn) deleteBucket(c DeleteBucket) error {
	b, err := t.bucket(c.Bucket)
	switch {
	case err != nil:
		return err
	case b == nil:
		return stream.ErrBucketNotFound
	case b.names > 0:
		return stream.ErrBucketNotEmpty
	}
	return t.delete(keyBucket(c.Bucket))
}

// recount adds to the counts of a stream's bucket: listed if a listing shows it.
func (t *txn) recount(rec *Record, listed, names int64) error {
	b, err := t.bucket(rec.Name.Bucket)
	if err != nil {
		return err
	}
	if b == nil {
		return fmt.Errorf("%w: bucket of %s has no record", ErrDamaged, rec.Name)
	}
	if rec.Name.Listed() {
		b.listed += uint64(listed)
	}
	b.names += uint64(names)
	return t.set(keyBucket(rec.Name.Bucket), b.encode())
}
