package s3

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"firn/internal/blob"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

const (
	batchSize   = 1000
	singleCalls = 8 // at once
	// maxDenied is how many single deletions may be denied before the others of
	// the call are not tried: a missing right meets them all.
	maxDenied = 3
)

// Delete implements [blob.Store].
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	failed := map[string]error{}
	var good []string
	for _, k := range keys {
		if _, err := s.key(k); err != nil {
			failed[k] = err
			continue
		}
		good = append(good, k)
	}
	for len(good) > 0 {
		n := min(len(good), batchSize)
		s.deleteSome(ctx, good[:n], failed)
		good = good[n:]
	}
	if len(failed) > 0 {
		return &blob.DeleteError{Failed: failed}
	}
	return nil
}

// deleteSome deletes at most batchSize keys and notes those that failed.
func (s *Store) deleteSome(ctx context.Context, keys []string, failed map[string]error) {
	if len(keys) == 1 || s.singleDeletes.Load() {
		s.deleteSingly(ctx, keys, failed)
		return
	}
	err := s.deleteBatch(ctx, keys, failed)
	switch {
	case err == nil:
	case errors.Is(err, blob.ErrDenied), errors.Is(err, blob.ErrNotSupported), errors.Is(err, blob.ErrCorrupt):
		// No such operation (501, 405), another idea of its checksum (400), or no
		// right to it alone (403).
		s.deleteSingly(ctx, keys, failed)
		if errors.Is(err, blob.ErrNotSupported) && !s.singleDeletes.Swap(true) {
			s.opts.Logger.Warn("object store refuses batch deletion, deleting one by one", "err", err)
		}
	default:
		for _, k := range keys {
			failed[k] = err
		}
	}
}

func (s *Store) deleteBatch(ctx context.Context, keys []string, failed map[string]error) error {
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(int64(len(keys))*blob.MaxKey), errStalled)
	defer cancel()
	var ids []types.ObjectIdentifier
	pending := map[string]string{} // key in the bucket → key
	for _, k := range keys {
		ids = append(ids, types.ObjectIdentifier{Key: aws.String(s.opts.Prefix + k)})
		pending[s.opts.Prefix+k] = k
	}
	// Not quiet: only what the answer names is confirmed.
	out, err := s.client.DeleteObjects(rctx, &s3.DeleteObjectsInput{Bucket: &s.opts.Bucket, Delete: &types.Delete{Objects: ids}})
	if err != nil {
		return s.meaning(ctx, err)
	}
	for _, e := range out.Errors {
		a := answer{status: 400, code: aws.ToString(e.Code), message: aws.ToString(e.Message)}
		if k, ok := pending[aws.ToString(e.Key)]; ok && a.sentinel() != blob.ErrNotFound {
			failed[k] = fmt.Errorf("%w: %s", a.sentinel(), a)
		}
		delete(pending, aws.ToString(e.Key))
	}
	for _, d := range out.Deleted {
		delete(pending, aws.ToString(d.Key))
	}
	for _, k := range pending {
		failed[k] = fmt.Errorf("%w: deletion was not confirmed", blob.ErrUnavailable)
	}
	return nil
}

// deleteSingly deletes key by key.
func (s *Store) deleteSingly(ctx context.Context, keys []string, failed map[string]error) {
	var mu sync.Mutex // guards failed and denied
	denied := 0
	var g errgroup.Group
	g.SetLimit(singleCalls)
	for _, k := range keys {
		g.Go(func() error {
			mu.Lock()
			enough := denied >= maxDenied
			mu.Unlock()
			err := fmt.Errorf("%w: not tried after %d others", blob.ErrDenied, maxDenied)
			if !enough {
				err = s.deleteOne(ctx, k)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[k] = err
			}
			if errors.Is(err, blob.ErrDenied) {
				denied++
			}
			return nil
		})
	}
	g.Wait()
}

func (s *Store) deleteOne(ctx context.Context, key string) error {
	rctx, cancel := context.WithTimeoutCause(ctx, s.budget(0), errStalled)
	defer cancel()
	_, err := s.client.DeleteObject(rctx, &s3.DeleteObjectInput{Bucket: &s.opts.Bucket, Key: aws.String(s.opts.Prefix + key)})
	if err = s.meaning(ctx, err); errors.Is(err, blob.ErrNotFound) {
		return nil // some stores say so; the object is gone
	}
	return err
}
