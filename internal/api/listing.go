package api

import (
	"net/http"
	"net/url"
	"unicode/utf8"

	"firn/tier"
)

// maxListing is the default and the largest page of a listing (X§1.4).
const maxListing = 1000

// listing is one page of a bucket's streams (X§1.4).
type listing struct {
	BucketID    string         `json:"bucket_id"`
	Prefix      string         `json:"prefix"`
	StreamCount uint64         `json:"stream_count"`
	Streams     []listedStream `json:"streams"`
	NextCursor  *string        `json:"next_cursor"`
	HasMore     bool           `json:"has_more"`
}

type listedStream struct {
	StreamID      string `json:"stream_id"`
	Status        string `json:"status"`
	ContentType   string `json:"content_type"`
	TailOffset    uint64 `json:"tail_offset"`
	CreatedAtMS   int64  `json:"created_at_ms"`
	LastWriteAtMS int64  `json:"last_write_at_ms"`
}

// listStreams serves GET and HEAD of a bucket's listing (X§1.4).
func (s *Server) listStreams(a *answer, r *http.Request) error {
	req, err := parseListing(r)
	if err != nil {
		return err
	}
	found, err := s.store.List(r.Context(), req)
	if err != nil {
		return err
	}
	out := listing{
		BucketID:    req.Bucket,
		Prefix:      req.Prefix,
		StreamCount: found.Total,
		Streams:     make([]listedStream, 0, len(found.Streams)),
		HasMore:     found.More,
	}
	for _, info := range found.Streams {
		out.Streams = append(out.Streams, listed(info))
	}
	if found.More {
		out.NextCursor = &out.Streams[len(out.Streams)-1].StreamID
	}
	return writeJSON(a, out)
}

func listed(info tier.Info) listedStream {
	status := "Open"
	if info.Closed {
		status = "Closed"
	}
	return listedStream{
		StreamID:      info.Name.ID,
		Status:        status,
		ContentType:   info.ContentType,
		TailOffset:    info.Tail.Position,
		CreatedAtMS:   info.CreatedAt.UnixMilli(),
		LastWriteAtMS: info.LastWriteAt.UnixMilli(),
	}
}

func parseListing(r *http.Request) (tier.ListRequest, error) {
	bucket, err := bucketOf(r)
	if err != nil {
		return tier.ListRequest{}, err
	}
	q, err := parseQuery(r)
	if err != nil {
		return tier.ListRequest{}, err
	}
	req := tier.ListRequest{Bucket: bucket, Limit: maxListing}
	if req.Prefix, err = idText(q, "prefix"); err != nil {
		return req, err
	}
	if req.After, err = idText(q, "after"); err != nil {
		return req, err
	}
	limit, given, err := single(q, "limit")
	if err != nil {
		return req, err
	}
	if given {
		n, ok := parseInteger(limit, maxListing)
		if !ok || n == 0 {
			return req, errLimit
		}
		req.Limit = int(n)
	}
	return req, nil
}

// idText returns the value of a parameter that is compared with stream ids, so UTF-8 as
// they are.
func idText(q url.Values, name string) (string, error) {
	value, _, err := single(q, name)
	if err == nil && !utf8.ValidString(value) {
		err = errQuery
	}
	return value, err
}
