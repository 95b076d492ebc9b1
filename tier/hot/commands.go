package hot

import (
	"context"

	"firn/pkg/stream"
)

// The methods below propose one command each and wait until it is durable and
// published. Their errors are those of the command, and [stream.ErrUnavailable]
// when the store is stopping. If ctx ends first, the outcome is unknown.

// CreateBucket makes a bucket.
func (s *Store) CreateBucket(ctx context.Context, bucket string) error {
	_, err := s.propose(ctx, CreateBucket{Bucket: bucket})
	return err
}

// DeleteBucket removes an empty bucket.
func (s *Store) DeleteBucket(ctx context.Context, bucket string) error {
	_, err := s.propose(ctx, DeleteBucket{Bucket: bucket})
	return err
}

// Create makes a stream. The incarnation is chosen here; c.ID is ignored.
func (s *Store) Create(ctx context.Context, c Create) (CreateResult, error) {
	if err := s.room(len(c.Payload)); err != nil {
		return CreateResult{}, err
	}
	for {
		c.ID = stream.NewID(c.Name, s.opts.Random())
		r, err := s.propose(ctx, c)
		if err == errIDTaken {
			continue
		}
		if err != nil {
			return CreateResult{}, err
		}
		return r.(CreateResult), nil
	}
}

// Append appends to a stream. It does not keep c.
func (s *Store) Append(ctx context.Context, c *Append) (AppendResult, error) {
	if err := s.room(len(c.Payload)); err != nil {
		return AppendResult{}, err
	}
	r, err := s.propose(ctx, c)
	if err != nil {
		return AppendResult{}, err
	}
	return r.(AppendResult), nil
}

// Delete removes an incarnation.
func (s *Store) Delete(ctx context.Context, id stream.ID) error {
	_, err := s.propose(ctx, Delete{ID: id})
	return err
}

// Expire removes an incarnation whose lifetime is over.
func (s *Store) Expire(ctx context.Context, id stream.ID) error {
	_, err := s.propose(ctx, Expire{ID: id})
	return err
}

// Publish makes a snapshot visible.
func (s *Store) Publish(ctx context.Context, c Publish) error {
	_, err := s.propose(ctx, c)
	return err
}

// Intend records that an object is about to be written.
func (s *Store) Intend(ctx context.Context, object string) error {
	_, err := s.propose(ctx, Intend{Object: object})
	return err
}

// Prolong lets an object be written whose intent may have been recorded long ago. When it
// returns nil the catalog will know the object for half the grace of an intent at least,
// and after that for the grace of what is retired; it costs a commit only if less is left.
// Errors: [ErrConflict] when the intent was given up.
func (s *Store) Prolong(ctx context.Context, object string) error {
	if s.opts.fault == FaultForgetIntent {
		return nil
	}
	v := s.View()
	fresh, err := v.fresh(object, s.Now()+s.limits().intentGrace/2)
	v.Close()
	if err != nil || fresh {
		return err
	}
	_, err = s.propose(ctx, Prolong{Object: object})
	return err
}

// Abandon retires intended objects.
func (s *Store) Abandon(ctx context.Context, objects ...string) error {
	_, err := s.propose(ctx, Abandon{Objects: objects})
	return err
}

// Seal names a segment.
func (s *Store) Seal(ctx context.Context, c Seal) error {
	_, err := s.propose(ctx, c)
	return err
}

// SealPack names segments of several streams.
func (s *Store) SealPack(ctx context.Context, c SealPack) (PackResult, error) {
	r, err := s.propose(ctx, c)
	if err != nil {
		return PackResult{}, err
	}
	return r.(PackResult), nil
}

// Replace puts segments in the place of older ones.
func (s *Store) Replace(ctx context.Context, c Replace) (PackResult, error) {
	r, err := s.propose(ctx, c)
	if err != nil {
		return PackResult{}, err
	}
	return r.(PackResult), nil
}

// Unmerge takes a stream with nothing to merge out of the index.
func (s *Store) Unmerge(ctx context.Context, id stream.ID) error {
	_, err := s.propose(ctx, Unmerge{ID: id})
	return err
}

// Evict gives up the hot copy of a stream's bytes below a position, in steps.
func (s *Store) Evict(ctx context.Context, id stream.ID, to uint64) error {
	for {
		cut, err := s.propose(ctx, Evict{ID: id, To: to})
		if err != nil || cut.(uint64) >= to {
			return err
		}
	}
}

// Trim lets go of segments that nothing needs.
func (s *Store) Trim(ctx context.Context, id stream.ID, limit int) (TrimResult, error) {
	return s.TrimFrom(ctx, id, 0, limit)
}

// TrimFrom is Trim that goes on where an earlier step has stopped; see [TrimResult].
func (s *Store) TrimFrom(ctx context.Context, id stream.ID, from uint64, limit int) (TrimResult, error) {
	r, err := s.propose(ctx, Trim{ID: id, Limit: limit, From: from})
	if err != nil {
		return TrimResult{}, err
	}
	return r.(TrimResult), nil
}

// Forget drops removed objects from the catalog.
func (s *Store) Forget(ctx context.Context, objects []string) error {
	_, err := s.propose(ctx, Forget{Objects: objects})
	return err
}

// Postpone lets the sweep come back to objects after the grace.
func (s *Store) Postpone(ctx context.Context, objects []string) error {
	_, err := s.propose(ctx, Postpone{Objects: objects})
	return err
}

// SetFence remembers the number of a start.
func (s *Store) SetFence(ctx context.Context, number uint64) error {
	_, err := s.propose(ctx, Fence{Number: number})
	return err
}
