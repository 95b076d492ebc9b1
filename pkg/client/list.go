package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"firn/pkg/stream"
)

// Listing is one page of a bucket's streams (X§1.4).
type Listing struct {
	Bucket  string         `json:"bucket_id"`
	Prefix  string         `json:"prefix"`
	Total   uint64         `json:"stream_count"` // of the bucket, whatever the prefix
	Streams []ListedStream `json:"streams"`
	// Next is where the next page begins, nil after the last one.
	Next *string `json:"next_cursor"`
}

// ListedStream is a stream in a [Listing].
type ListedStream struct {
	ID          string `json:"stream_id"`
	Status      string `json:"status"` // "Open" or "Closed"
	ContentType string `json:"content_type"`
	Tail        uint64 `json:"tail_offset"` // position in bytes
	CreatedMs   int64  `json:"created_at_ms"`
	LastWriteMs int64  `json:"last_write_at_ms"`
}

// List returns the streams of a bucket whose ids begin with prefix and sort after
// the given one, at most a thousand. Errors: [stream.ErrBucketName],
// [ErrUnreachable], [*Error], [ErrAnswer].
func (c *Client) List(ctx context.Context, bucket, prefix, after string) (Listing, error) {
	if err := stream.CheckBucket(bucket); err != nil {
		return Listing{}, err
	}
	q := url.Values{}
	if prefix != "" {
		q.Set("prefix", prefix)
	}
	if after != "" {
		q.Set("after", after)
	}
	resp, err := c.do(ctx, http.MethodGet, c.root+"/ds/"+bucket+"/streams", q)
	if err != nil {
		return Listing{}, err
	}
	defer resp.Body.Close()
	var l Listing
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
		return Listing{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return l, nil
}
