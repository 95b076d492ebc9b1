// Package open turns the URL of an object store into a store. It is apart from
// package blob because it knows all implementations.
//
//	file:///var/lib/firn/objects
//	s3://bucket/prefix?region=eu-west-1
//	s3://bucket?endpoint=https://minio:9000&path_style=true
//	mem:                                     for tests, see Options.Mem
//
// The query keys of s3 are region, endpoint, path_style (true, false), checksum
// (auto, required-only), conditional_put (auto, off), storage_class, sse (AES256,
// aws:kms) and sse_key_id. A key that is unknown or given twice is an error, as
// are credentials in a URL, which would end up in logs.
package open

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"firn/internal/blob"
	"firn/internal/blob/fs"
	"firn/internal/blob/mem"
	"firn/internal/blob/s3"
)

// Options of an opened store. The zero value is usable.
type Options struct {
	// AccessKey, SecretKey and SessionToken are for s3; empty: the AWS chain.
	AccessKey    string
	SecretKey    string
	SessionToken string
	// Unchecked returns an s3 store without asking its bucket for anything, for a
	// server that must start while the bucket is away.
	Unchecked bool
	// Mem allows mem:, which forgets all objects when the process ends.
	Mem bool
	// IdleTimeout ends a call to s3 during which no byte moves for so long; 0 is the
	// default of s3.Options.
	IdleTimeout time.Duration
	// Logger is for what an operator should know; nil discards.
	Logger *slog.Logger
}

// Open opens the store of a URL, without any wrapper. A wrong URL is
// blob.ErrDenied; see fs.Open and s3.Open for the others.
func Open(ctx context.Context, rawURL string, opts Options) (blob.Store, error) {
	s, err := open(ctx, rawURL, opts)
	if err != nil {
		return nil, fmt.Errorf("open object store: %w", err)
	}
	return s, nil
}

func open(ctx context.Context, rawURL string, opts Options) (blob.Store, error) {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		// Not the parser's error: it quotes the URL, credentials and all.
		return nil, fmt.Errorf("%w: not a URL", blob.ErrDenied)
	case u.User != nil:
		return nil, fmt.Errorf("%w: credentials do not belong into the URL", blob.ErrDenied)
	case u.Fragment != "":
		return nil, fmt.Errorf("%w: a URL with a fragment", blob.ErrDenied)
	}
	q := &query{}
	if q.values, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, fmt.Errorf("%w: query: %w", blob.ErrDenied, err)
	}
	switch {
	case u.Scheme == "file" && u.Host == "" && len(u.Path) > 1:
		if err := q.end(); err != nil {
			return nil, err
		}
		return fs.Open(u.Path, fs.Options{})
	case u.Scheme == "s3" && u.Host != "":
		return openS3(ctx, u, q, opts)
	case u.Scheme == "mem" && u.Host+u.Path+u.Opaque == "" && opts.Mem:
		if err := q.end(); err != nil {
			return nil, err
		}
		return mem.New(mem.Options{}), nil
	}
	return nil, fmt.Errorf("%w: want file:///folder or s3://bucket/prefix, not %q", blob.ErrDenied, rawURL)
}

func openS3(ctx context.Context, u *url.URL, q *query, opts Options) (blob.Store, error) {
	o := s3.Options{
		Bucket:       u.Host,
		Prefix:       u.Path,
		Region:       q.take("region"),
		Endpoint:     q.take("endpoint"),
		PathStyle:    q.takeBool("path_style"),
		Checksum:     s3.Checksum(q.take("checksum")),
		Conditional:  s3.Conditional(q.take("conditional_put")),
		StorageClass: q.take("storage_class"),
		SSE:          q.take("sse"),
		SSEKeyID:     q.take("sse_key_id"),
		AccessKey:    opts.AccessKey,
		SecretKey:    opts.SecretKey,
		IdleTimeout:  opts.IdleTimeout,
		SessionToken: opts.SessionToken,
		Logger:       opts.Logger,
	}
	if err := q.end(); err != nil {
		return nil, err
	}
	if opts.Unchecked {
		return s3.New(ctx, o)
	}
	return s3.Open(ctx, o)
}

// query hands out the keys of a query, and keeps the first mistake.
type query struct {
	values url.Values
	err    error
}

func (q *query) take(key string) string {
	v := q.values[key]
	delete(q.values, key)
	switch {
	case len(v) == 0:
		return ""
	case len(v) > 1, v[0] == "":
		q.fail("query key %q wants one value", key)
	}
	return v[0]
}

func (q *query) takeBool(key string) bool {
	v := q.take(key)
	if v == "" {
		return false
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		q.fail("query key %q is neither true nor false", key)
	}
	return b
}

func (q *query) fail(format string, args ...any) {
	if q.err == nil {
		q.err = fmt.Errorf("%w: "+format, append([]any{blob.ErrDenied}, args...)...)
	}
}

// end returns the first mistake; a key that nobody took is one.
func (q *query) end() error {
	for k := range q.values {
		q.fail("unknown query key %q", k)
	}
	return q.err
}
