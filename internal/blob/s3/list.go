package s3

import (
	"context"
	"fmt"
	"strings"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// List implements [blob.Store]. It holds one page in memory and makes no request
// while fn runs.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	in := &s3.ListObjectsV2Input{
		Bucket:  &s.opts.Bucket,
		Prefix:  aws.String(s.opts.Prefix + prefix),
		MaxKeys: &s.opts.PageSize,
	}
	if after != "" {
		in.StartAfter = aws.String(s.opts.Prefix + after)
	}
	last := ""
	for {
		out, err := s.page(ctx, in)
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, o := range out.Contents {
			key, ok := strings.CutPrefix(aws.ToString(o.Key), s.opts.Prefix)
			if !ok || !strings.HasPrefix(key, prefix) || key <= last && last != "" {
				return fmt.Errorf("list %s: %w: key %q after %q", prefix, blob.ErrCorrupt, aws.ToString(o.Key), last)
			}
			last = key
			if key <= after || key == probeKey {
				continue // a store that does not know StartAfter; our own mark
			}
			err := fn(blob.Info{Key: key, Size: aws.ToInt64(o.Size), ETag: aws.ToString(o.ETag), Modified: aws.ToTime(o.LastModified)})
			if err != nil {
				return err
			}
		}
		if !aws.ToBool(out.IsTruncated) {
			return nil
		}
		next := aws.ToString(out.NextContinuationToken)
		if next == "" || next == aws.ToString(in.ContinuationToken) {
			return fmt.Errorf("list %s: %w: listing does not advance", prefix, blob.ErrCorrupt)
		}
		in.ContinuationToken = &next
	}
}

func (s *Store) page(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(int64(s.opts.PageSize)*2*blob.MaxKey), errStalled)
	defer cancel()
	out, err := s.client.ListObjectsV2(rctx, in)
	return out, s.meaning(ctx, err)
}
