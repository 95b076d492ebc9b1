package tier

import (
	"context"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// CreateBucket makes a bucket (X§1.2). Errors: [stream.ErrBucketExists].
func (s *Store) CreateBucket(ctx context.Context, bucket string) error {
	return s.hot.CreateBucket(ctx, bucket)
}

// DeleteBucket removes an empty bucket (X§1.5). Errors: [stream.ErrBucketReserved],
// [stream.ErrBucketNotFound], [stream.ErrBucketNotEmpty].
func (s *Store) DeleteBucket(ctx context.Context, bucket string) error {
	if bucket == stream.DefaultBucket {
		return stream.ErrBucketReserved
	}
	if err := s.hot.ExpireDue(ctx); err != nil {
		return err
	}
	return s.hot.DeleteBucket(ctx, bucket)
}

// Bucket returns a bucket's metadata (X§1.3). Errors: [stream.ErrBucketNotFound].
func (s *Store) Bucket(ctx context.Context, bucket string) (BucketInfo, error) {
	if err := s.hot.ExpireDue(ctx); err != nil {
		return BucketInfo{}, err
	}
	v := s.hot.View()
	defer v.Close()
	b, err := v.Bucket(bucket)
	if err != nil {
		return BucketInfo{}, err
	}
	return BucketInfo{Bucket: bucket, Streams: b.Listed}, nil
}

// Buckets returns the names of all buckets, in byte order.
func (s *Store) Buckets(context.Context) ([]string, error) {
	v := s.hot.View()
	defer v.Close()
	return v.Buckets()
}

// List returns streams of a bucket in the byte order of their ids (X§1.4).
// Errors: [stream.ErrBucketNotFound].
func (s *Store) List(ctx context.Context, r ListRequest) (Listing, error) {
	if err := s.hot.ExpireDue(ctx); err != nil {
		return Listing{}, err
	}
	v := s.hot.View()
	defer v.Close()
	b, err := v.Bucket(r.Bucket)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Total: b.Listed, Streams: []Info{}}
	err = v.Names(r.Bucket, r.Prefix, r.After, func(rec *hot.Record) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if rec.Deleted || !rec.Name.Listed() || s.hot.Expired(rec) {
			return true, nil
		}
		if len(l.Streams) == r.Limit {
			l.More = true
			return false, nil
		}
		l.Streams = append(l.Streams, info(rec))
		return true, nil
	})
	return l, err
}
