package client

import (
	"fmt"
	"net/url"
	"strings"

	"firn/pkg/stream"
)

// DefaultURL is where a firn server listens that is told nothing.
const DefaultURL = "http://127.0.0.1:4437"

// Client is a firn server: buckets and the streams in them. It is safe for concurrent
// use.
type Client struct {
	root string // without a slash at the end
	o    Options
}

// New makes a client of the server whose root is given, such as [DefaultURL], which an
// empty one means. It does not ask the server for anything. Errors: [ErrURL].
func New(root string, o Options) (*Client, error) {
	if root == "" {
		root = DefaultURL
	}
	u, err := url.Parse(root)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is %w", root, ErrURL)
	}
	return &Client{root: strings.TrimSuffix(u.String(), "/"), o: o.withDefaults()}, nil
}

// Stream returns a stream of the server. Names that the bucketed surface cannot spell
// are on the flat one.
func (c *Client) Stream(n stream.Name) *Stream {
	if n.Listed() {
		return &Stream{target: c.bucketURL(n.Bucket) + "/" + url.PathEscape(n.ID), o: c.o}
	}
	segments := strings.Split(n.ID, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return &Stream{target: c.root + "/v1/stream/" + strings.Join(segments, "/"), o: c.o}
}

func (c *Client) bucketURL(bucket string) string { return c.root + "/ds/" + url.PathEscape(bucket) }
