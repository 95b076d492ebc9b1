package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Get implements [blob.Store].
func (s *Store) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	r, info, err := s.get(ctx, key, off, n)
	if err != nil {
		return nil, blob.Info{}, fmt.Errorf("get %s: %w", key, err)
	}
	return r, info, nil
}

func (s *Store) get(ctx context.Context, key string, off, n int64) (io.ReadCloser, blob.Info, error) {
	k, err := s.key(key)
	if err != nil {
		return nil, blob.Info{}, err
	}
	if err := blob.CheckRange(off, n); err != nil {
		return nil, blob.Info{}, err
	}
	if n == 0 {
		info, err := s.stat(ctx, key)
		return http.NoBody, info, err
	}
	w := s.watch(ctx, max(n, 0))
	out, err := s.client.GetObject(w.ctx, &s3.GetObjectInput{Bucket: &s.opts.Bucket, Key: k, Range: header(off, n)})
	w.rest()
	if err != nil {
		err = w.why(err)
		w.stop()
		if err = s.meaning(ctx, err); errors.Is(err, blob.ErrRange) {
			return s.unsatisfiable(ctx, key, off, n, err)
		}
		return nil, blob.Info{}, err
	}
	body := &receiving{ReadCloser: out.Body, w: w, s: s}
	p, err := promised(out, off, n)
	if err == nil {
		w.left += s.budget(p.skip+p.length) - s.budget(max(n, 0))
		_, err = io.CopyN(io.Discard, body, p.skip)
	}
	if err != nil {
		body.Close()
		return nil, blob.Info{}, err
	}
	info := blob.Info{Key: key, Size: p.size, ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}
	if p.more {
		return &beginning{Reader: io.LimitReader(body, p.length), Closer: body}, info, nil
	}
	return blob.Exactly(body, p.length), info, nil
}

// header returns the Range header, nil for the whole object.
func header(off, n int64) *string {
	switch {
	case off < 0:
		return aws.String(fmt.Sprintf("bytes=%d", off))
	case n > 0:
		return aws.String(fmt.Sprintf("bytes=%d-%d", off, off+n-1))
	case off > 0:
		return aws.String(fmt.Sprintf("bytes=%d-", off))
	}
	return nil
}

// promise is what the head of an answer says of its body.
type promise struct {
	size   int64 // of the object
	skip   int64 // bytes before the wanted ones
	length int64 // the wanted ones
	more   bool  // others follow
}

// promised checks the head of an answer against what was asked for.
func promised(out *s3.GetObjectOutput, off, n int64) (promise, error) {
	if out.ContentLength == nil || *out.ContentLength < 0 {
		return promise{}, fmt.Errorf("%w: answer without a length", blob.ErrCorrupt)
	}
	got := *out.ContentLength
	if out.ContentRange == nil {
		// The whole object: asked for, or the range was ignored, which HTTP allows.
		start, length, err := blob.Resolve(off, n, got)
		return promise{size: got, skip: start, length: length, more: start+length < got}, err
	}
	first, last, size, err := parseContentRange(*out.ContentRange)
	if err != nil {
		return promise{}, err
	}
	start, length, err := blob.Resolve(off, n, size)
	if err != nil {
		return promise{}, err
	}
	if first != start || last != start+length-1 || got != length {
		return promise{}, fmt.Errorf("%w: %d bytes of range %q in answer to offset %d length %d",
			blob.ErrCorrupt, got, *out.ContentRange, off, n)
	}
	return promise{size: size, length: length}, nil
}

// parseContentRange parses "bytes 0-9/100".
func parseContentRange(s string) (first, last, size int64, err error) {
	spec, ok := strings.CutPrefix(s, "bytes ")
	bounds, total, ok2 := strings.Cut(spec, "/")
	a, b, ok3 := strings.Cut(bounds, "-")
	first, err1 := strconv.ParseInt(a, 10, 64)
	last, err2 := strconv.ParseInt(b, 10, 64)
	size, err3 := strconv.ParseInt(total, 10, 64)
	if !ok || !ok2 || !ok3 || errors.Join(err1, err2, err3) != nil || first > last || last >= size {
		return 0, 0, 0, fmt.Errorf("%w: answer with range %q", blob.ErrCorrupt, s)
	}
	return first, last, size, nil
}

// unsatisfiable decides after an answer 416, which also meets the suffix of an
// empty object, and with some stores one that is longer than the object.
func (s *Store) unsatisfiable(ctx context.Context, key string, off, n int64, cause error) (io.ReadCloser, blob.Info, error) {
	info, err := s.stat(ctx, key)
	if err != nil {
		return nil, blob.Info{}, err
	}
	start, length, err := blob.Resolve(off, n, info.Size)
	switch {
	case err != nil:
		return nil, blob.Info{}, err
	case length == 0:
		return http.NoBody, info, nil
	case off < 0 && start == 0:
		return s.get(ctx, key, 0, -1)
	}
	return nil, blob.Info{}, fmt.Errorf("%w: store has %d bytes, but %w", blob.ErrCorrupt, info.Size, cause)
}

// stat returns the Info of an object.
func (s *Store) stat(ctx context.Context, key string) (blob.Info, error) {
	k := s.opts.Prefix + key
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(0), errStalled)
	defer cancel()
	out, err := s.client.HeadObject(rctx, &s3.HeadObjectInput{Bucket: &s.opts.Bucket, Key: &k})
	if err != nil {
		if answerOf(err).status/100 == 4 {
			return blob.Info{}, s.why(ctx, k)
		}
		return blob.Info{}, s.meaning(ctx, err)
	}
	if out.ContentLength == nil {
		return blob.Info{}, fmt.Errorf("%w: answer without a length", blob.ErrCorrupt)
	}
	return blob.Info{Key: key, Size: *out.ContentLength, ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}, nil
}

// why finds out what a refusal of a HEAD means, such as 404: it has no body to say
// so.
func (s *Store) why(ctx context.Context, k string) error {
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(0), errStalled)
	defer cancel()
	out, err := s.client.GetObject(rctx, &s3.GetObjectInput{Bucket: &s.opts.Bucket, Key: &k, Range: aws.String("bytes=0-0")})
	if err == nil {
		out.Body.Close()
		return fmt.Errorf("%w: the answer changed meanwhile", blob.ErrUnavailable)
	}
	return s.meaning(ctx, err)
}

// beginning is the first bytes of a body of which more follow.
type beginning struct {
	io.Reader
	io.Closer
}
