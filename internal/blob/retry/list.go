package retry

import (
	"context"

	"firn/internal/blob"
)

// Delete implements [blob.Store]. Only keys that were not confirmed are tried
// again.
func (s *Store) Delete(ctx context.Context, keys ...string) error {
	outcome := map[string]error{} // of keys that failed for good
	err := s.do(ctx, "delete", func() error {
		err := s.inner.Delete(ctx, keys...)
		de, ok := err.(*blob.DeleteError)
		if !ok {
			return err
		}
		var again []string
		for k, err := range de.Failed {
			if blob.Retryable(err) {
				again = append(again, k)
			} else {
				outcome[k] = err
			}
		}
		if keys = again; len(again) == 0 {
			return nil
		}
		return err
	})
	if err != nil {
		de, ok := err.(*blob.DeleteError)
		for _, k := range keys {
			outcome[k] = err
			if ok {
				outcome[k] = de.Failed[k]
			}
		}
	}
	if len(outcome) > 0 {
		return &blob.DeleteError{Failed: outcome}
	}
	return nil
}

// List implements [blob.Store]. It goes on after the last key that fn has seen; a
// listing that gets ahead may take any number of attempts.
func (s *Store) List(ctx context.Context, prefix, after string, fn func(blob.Info) error) error {
	for {
		ahead := false
		var fnErr error
		err := s.do(ctx, "list", func() error {
			err := s.inner.List(ctx, prefix, after, func(info blob.Info) error {
				after, ahead = info.Key, true
				fnErr = fn(info)
				return fnErr
			})
			if fnErr != nil {
				return nil // the store did its part
			}
			return err
		})
		if fnErr != nil {
			return fnErr
		}
		if !ahead || !blob.Retryable(err) {
			return err
		}
	}
}
