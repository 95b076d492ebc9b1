package s3

import (
	"context"
	"errors"
	"fmt"
	"io"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Put implements [blob.Store]. Objects larger than Options.SinglePut are uploaded
// in parts. Nothing is held in memory but what the connection buffers.
func (s *Store) Put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (blob.Info, error) {
	if err := blob.CheckPut(key, opts); err != nil {
		return blob.Info{}, fmt.Errorf("put: %w", err)
	}
	etag, err := s.put(ctx, key, body, opts)
	if err != nil {
		return blob.Info{}, fmt.Errorf("put %s: %w", key, err)
	}
	return blob.Info{Key: key, Size: body.Size(), ETag: etag}, nil
}

func (s *Store) put(ctx context.Context, key string, body blob.Body, opts blob.PutOptions) (etag string, err error) {
	k, err := s.key(key)
	if err != nil {
		return "", err
	}
	if err := s.supports(ctx, opts); err != nil {
		return "", err
	}
	if body.Size() > s.opts.SinglePut {
		etag, err = s.putParts(ctx, k, body, opts)
	} else {
		etag, err = s.putSingle(ctx, k, body, opts)
	}
	return etag, conditionError(err, opts)
}

func (s *Store) putSingle(ctx context.Context, k *string, body blob.Body, opts blob.PutOptions) (string, error) {
	w := s.watch(ctx, body.Size())
	defer w.stop()
	out, err := s.client.PutObject(w.ctx, &s3.PutObjectInput{
		Bucket:               &s.opts.Bucket,
		Key:                  k,
		Body:                 &sending{io.NewSectionReader(body, 0, body.Size()), w},
		ContentLength:        aws.Int64(body.Size()),
		IfNoneMatch:          ifNoneMatch(opts),
		IfMatch:              ifMatch(opts),
		StorageClass:         types.StorageClass(s.opts.StorageClass),
		ServerSideEncryption: types.ServerSideEncryption(s.opts.SSE),
		SSEKMSKeyId:          optional(s.opts.SSEKeyID),
	})
	if err != nil {
		return "", s.meaning(ctx, w.why(err))
	}
	return aws.ToString(out.ETag), nil
}

// conditionError gives a refused condition its name. A missing object cannot match
// either; S3 says NoSuchKey then.
func conditionError(err error, opts blob.PutOptions) error {
	switch {
	case opts.IfNoneMatch && errors.Is(err, blob.ErrPrecondition):
		return blob.ErrExists
	case opts.IfMatch != "" && errors.Is(err, blob.ErrNotFound):
		return blob.ErrPrecondition
	case errors.Is(err, blob.ErrNotFound):
		return fmt.Errorf("%w: put answered %v", blob.ErrDenied, err)
	}
	return err
}

func ifNoneMatch(opts blob.PutOptions) *string {
	if opts.IfNoneMatch {
		return aws.String("*")
	}
	return nil
}

func ifMatch(opts blob.PutOptions) *string { return optional(opts.IfMatch) }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
