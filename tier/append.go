package tier

import (
	"context"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// Append adds a body to a stream, closes it, or both in one step (B§5.2, B§5.3).
// It returns when the change is durable. Errors: as for Head; those of
// [stream.Admit]; [stream.ErrEmptyBody]; a [*stream.JSONError];
// [stream.ErrEmptyArray]; [stream.ErrProducerLimit]; [stream.ErrHotFull].
func (s *Store) Append(ctx context.Context, r AppendRequest) (AppendResult, error) {
	rec, err := s.find(ctx, r.Name)
	if err != nil {
		return AppendResult{}, err
	}
	if len(r.Body) == 0 && !r.Close {
		return AppendResult{}, stream.ErrEmptyBody
	}
	c := &hot.Append{
		ID: rec.ID, ContentType: r.ContentType, Payload: r.Body,
		Seq: r.Seq, Producer: r.Producer, Close: r.Close,
	}
	// A body that cannot be accepted is not parsed: the committer is to say why,
	// or that it is a duplicate. Neither reason ever goes away.
	if rec.Mode == stream.JSON && len(r.Body) > 0 && !rec.Closed && stream.SameType(r.ContentType, rec.ContentType) {
		buf := s.getBuffer()
		defer s.putBuffer(buf)
		if *buf, _, err = stream.EncodeJSON(*buf, r.Body); err != nil {
			return AppendResult{}, err
		}
		c.Payload = *buf
	}
	done, err := s.hot.Append(ctx, c)
	if err != nil {
		return AppendResult{}, err
	}
	s.hot.Renew(rec)
	return AppendResult{Tail: done.Tail, Closed: done.Closed, Duplicate: done.Duplicate, Producer: done.Producer}, nil
}
