package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// CreateBucket makes a bucket (X§1.2). It is not repeated. Errors:
// [stream.ErrBucketExists] and others as [*Error], [stream.ErrBucketName],
// [ErrUnreachable].
func (c *Client) CreateBucket(ctx context.Context, bucket string) error {
	if err := stream.CheckBucket(bucket); err != nil {
		return err
	}
	return c.o.change(ctx, request{method: http.MethodPut, url: c.bucketURL(bucket)})
}

// DeleteBucket removes an empty bucket (X§1.5). It is not repeated. Errors:
// [stream.ErrBucketNotEmpty] and others as [*Error], [stream.ErrBucketName],
// [ErrUnreachable].
func (c *Client) DeleteBucket(ctx context.Context, bucket string) error {
	if err := stream.CheckBucket(bucket); err != nil {
		return err
	}
	return c.o.change(ctx, request{method: http.MethodDelete, url: c.bucketURL(bucket)})
}

// CountStreams returns how many streams a bucket has (X§1.3). Errors:
// [stream.ErrBucketNotFound] and others as [*Error], [stream.ErrBucketName],
// [ErrUnreachable], [ErrAnswer].
func (c *Client) CountStreams(ctx context.Context, bucket string) (uint64, error) {
	if err := stream.CheckBucket(bucket); err != nil {
		return 0, err
	}
	var b struct {
		Bucket  string `json:"bucket_id"`
		Streams uint64 `json:"streams"`
	}
	err := c.get(ctx, c.bucketURL(bucket), &b)
	if err == nil && b.Bucket != bucket {
		err = fmt.Errorf("%w: bucket %q was asked for, got %q", ErrAnswer, bucket, b.Bucket)
	}
	return b.Streams, err
}

// ListedStream is a stream in a listing (X§1.4).
type ListedStream struct {
	ID          string `json:"stream_id"`
	Status      string `json:"status"` // "Open" or "Closed"
	ContentType string `json:"content_type"`
	Tail        uint64 `json:"tail_offset"` // position in bytes
	CreatedMs   int64  `json:"created_at_ms"`
	LastWriteMs int64  `json:"last_write_at_ms"`
}

// Streams yields the streams of a bucket whose ids begin with prefix, in their order.
// A failed request is repeated; the first error that remains ends the iteration.
// Errors: as of [Client.CountStreams].
func (c *Client) Streams(ctx context.Context, bucket, prefix string) iter.Seq2[ListedStream, error] {
	return func(yield func(ListedStream, error) bool) {
		if err := stream.CheckBucket(bucket); err != nil {
			yield(ListedStream{}, err)
			return
		}
		q := url.Values{}
		if prefix != "" {
			q.Set("prefix", prefix)
		}
		for {
			var page struct {
				Streams []ListedStream `json:"streams"`
				Next    *string        `json:"next_cursor"`
			}
			target := c.bucketURL(bucket) + "/streams"
			if len(q) > 0 {
				target += "?" + q.Encode()
			}
			if err := c.get(ctx, target, &page); err != nil {
				yield(ListedStream{}, err)
				return
			}
			for _, s := range page.Streams {
				if !yield(s, nil) {
					return
				}
			}
			if page.Next == nil {
				return
			}
			if *page.Next <= q.Get("after") {
				yield(ListedStream{}, fmt.Errorf("%w: a listing that goes back", ErrAnswer))
				return
			}
			q.Set("after", *page.Next)
		}
	}
}

// maxListing bounds one page of a listing, in bytes.
const maxListing = 16 << 20

// get decodes an answer in JSON.
func (c *Client) get(ctx context.Context, target string, v any) error {
	_, err := repeat(ctx, c.o.Retry, func() (struct{}, error) {
		resp, err := c.o.send(ctx, request{method: http.MethodGet, url: target})
		if err != nil {
			return struct{}{}, err
		}
		defer resp.Body.Close()
		body, err := readAll(resp.Body, maxListing)
		if err != nil {
			return struct{}{}, err
		}
		if err := json.Unmarshal(body, v); err != nil {
			return struct{}{}, fmt.Errorf("%w: %w", ErrAnswer, err)
		}
		return struct{}{}, nil
	})
	return err
}
