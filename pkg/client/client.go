// Package client speaks to a firn server: the Durable Streams protocol (B§) and
// its extensions (X§).
//
// What a page holds is the stream's stored bytes, whatever form they had on the
// wire: of a JSON stream NDJSON, one message a line. So a position counts the same
// bytes here, in the server and in the archive.
//
// Nothing is retried: an [Error] says whether and when it is worth it.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"firn/pkg/stream"
)

// Options configures a [Client].
type Options struct {
	// URL is the root of the server, such as http://127.0.0.1:4437, which is the
	// default.
	URL string
	// HTTP makes the requests (default [http.DefaultClient]). It should have no
	// Timeout: live reads take long, callers bound them by their context.
	HTTP *http.Client
}

// DefaultURL is where a server listens that is told nothing.
const DefaultURL = "http://127.0.0.1:4437"

// ErrURL: not the URL of a server.
var ErrURL = errors.New("not the URL of a server: write it as in " + DefaultURL)

// Client is a server as its clients see it. It is safe for concurrent use.
type Client struct {
	root string // without a slash at the end
	http *http.Client
}

// New makes a client. It does not ask the server for anything. Errors: [ErrURL].
func New(o Options) (*Client, error) {
	if o.URL == "" {
		o.URL = DefaultURL
	}
	if o.HTTP == nil {
		o.HTTP = http.DefaultClient
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is %w", o.URL, ErrURL)
	}
	return &Client{root: strings.TrimSuffix(u.String(), "/"), http: o.HTTP}, nil
}

// streamURL is the URL of a stream: names that the bucketed surface cannot spell
// are on the flat one.
func (c *Client) streamURL(n stream.Name) string {
	if n.Listed() {
		return c.root + "/ds/" + url.PathEscape(n.Bucket) + "/" + url.PathEscape(n.ID)
	}
	segments := strings.Split(n.ID, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return c.root + "/v1/stream/" + strings.Join(segments, "/")
}

// do makes a request and returns its answer if that is one of success, whose body
// the caller closes. Errors: [ErrUnreachable], [*Error].
func (c *Client) do(ctx context.Context, method, target string, query url.Values) (*http.Response, error) {
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		return nil, ReadError(resp)
	}
	return resp, nil
}
