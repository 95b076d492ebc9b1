package tier

import (
	"context"
	"errors"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// Create makes a stream (B§5.1) or a fork (B§4.2); created is false when it was
// there, configured alike. Errors: [stream.ErrBucketNotFound], [stream.ErrExists],
// [stream.ErrNameBlocked], a [*stream.JSONError], [stream.ErrHotFull]; for forks
// also [stream.ErrForkSourceNotFound], [stream.ErrForkSourceGone],
// [stream.ErrContentType], offset errors, [stream.ErrForkSubOffset], a
// [*stream.TrimmedError].
func (s *Store) Create(ctx context.Context, r CreateRequest) (Info, bool, error) {
	for {
		i, created, err := s.create(ctx, r)
		// The stream that was found has gone meanwhile: resolve the request in full.
		if !errors.Is(err, hot.ErrConflict) {
			return i, created, err
		}
	}
}

func (s *Store) create(ctx context.Context, r CreateRequest) (Info, bool, error) {
	c := hot.Create{Name: r.Name, ContentType: r.ContentType, Lifetime: r.Lifetime, Closed: r.Closed}
	existing, err := s.find(ctx, r.Name)
	switch {
	case errors.Is(err, stream.ErrNotFound):
		existing = nil
	case errors.Is(err, stream.ErrGone):
		return Info{}, false, stream.ErrNameBlocked
	case err != nil:
		return Info{}, false, err
	}
	if r.Fork != nil {
		if err := s.resolveFork(ctx, &c, r.Fork, existing); err != nil {
			return Info{}, false, err
		}
	} else if c.ContentType == "" {
		c.ContentType = stream.DefaultContentType
	}
	if c.Mode == 0 {
		c.Mode = stream.ModeOf(c.ContentType)
	}
	if existing != nil {
		c.Found = existing.ID
	} else if c.Payload, err = encode(c.Mode, r.Body); err != nil {
		return Info{}, false, err
	}
	done, err := s.hot.Create(ctx, c)
	if err != nil {
		return Info{}, false, err
	}
	if done.Created && !s.hot.Expired(done.Record) {
		s.hot.Renew(done.Record) // or its life would last to the persisted deadline, which leads
	}
	return info(done.Record), done.Created, nil
}

// encode turns the first body of a stream into stored bytes. An empty JSON array
// is an empty stream (B§9.1.3).
func encode(mode stream.Mode, body []byte) ([]byte, error) {
	if mode != stream.JSON || len(body) == 0 {
		return body, nil
	}
	stored, _, err := stream.EncodeJSON(nil, body)
	if errors.Is(err, stream.ErrEmptyArray) {
		return nil, nil
	}
	return stored, err
}

// resolveFork fills in what a fork takes from its source. If the target exists,
// the request is only compared with it: its source may be gone by now.
func (s *Store) resolveFork(ctx context.Context, c *hot.Create, f *ForkRequest, existing *hot.Record) error {
	c.Fork = &hot.CreateFork{From: f.Source, SubOffset: f.SubOffset, Anchored: f.Offset != nil}
	if existing != nil {
		if c.ContentType == "" {
			c.ContentType = existing.ContentType
		}
		if o := f.Offset; o != nil {
			if _, err := existing.Lives().Resolve(*o, existing.Tail); errors.Is(err, stream.ErrOffsetOtherLife) {
				return stream.ErrExists
			}
			c.Fork.Anchor = o.Position
		}
		return nil
	}
	src, err := s.find(ctx, f.Source)
	switch {
	case errors.Is(err, stream.ErrNotFound), errors.Is(err, stream.ErrBucketNotFound):
		return stream.ErrForkSourceNotFound
	case errors.Is(err, stream.ErrGone):
		return stream.ErrForkSourceGone
	case err != nil:
		return err
	}
	if c.ContentType == "" {
		c.ContentType = src.ContentType
	} else if !stream.SameType(c.ContentType, src.ContentType) {
		return stream.ErrContentType
	}
	c.Mode = src.Mode
	c.Fork.Source, c.Fork.Anchor = src.ID, src.Tail
	if f.Offset != nil {
		if c.Fork.Anchor, err = src.Lives().Resolve(*f.Offset, src.Tail); err != nil {
			return err
		}
	}
	if c.Fork.Anchor < src.Earliest {
		return &stream.TrimmedError{Earliest: src.Offset(src.Earliest)}
	}
	if err := s.boundary(ctx, src.ID, c.Fork.Anchor); err != nil {
		return err
	}
	c.Fork.Position, err = s.advance(ctx, src, c.Fork.Anchor, f.SubOffset)
	return err
}

// advance resolves a sub-offset: n messages (JSON) or bytes past an anchor, within
// one page. Errors: [stream.ErrForkSubOffset].
func (s *Store) advance(ctx context.Context, src *hot.Record, anchor, n uint64) (uint64, error) {
	if n == 0 {
		return anchor, nil
	}
	if n > src.Tail-anchor || n > uint64(s.opts.ReadBytes) {
		return 0, stream.ErrForkSubOffset
	}
	if src.Mode != stream.JSON {
		return anchor + n, nil
	}
	p, err := s.refill(ctx, src.ID, anchor, s.opts.ReadBytes)
	if err != nil {
		return 0, err
	}
	defer p.Release()
	pos, limit := anchor, anchor+uint64(s.opts.ReadBytes)
	for m := range stream.Messages(p.Data) {
		pos += uint64(len(m)) + 1
		if n--; n == 0 && pos <= limit {
			return pos, nil
		}
	}
	return 0, stream.ErrForkSubOffset
}
