package subscribe

import (
	"context"
	"errors"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// WakeRequest names a wake, as whoever holds it must (B§7.3).
type WakeRequest struct {
	WakeID     string `json:"wake_id"`
	Generation uint64 `json:"generation"`
}

// AckRequest is what a worker says about a wake (B§7.1, B§7.2).
type AckRequest struct {
	WakeRequest
	Acks []StreamAck `json:"acks"`
	Done bool        `json:"done"`
}

// StreamAck says up to where a stream was processed.
type StreamAck struct {
	Stream string `json:"stream"`
	Offset string `json:"offset"`
}

// Claimed is a wake that a worker has got (B§7.2).
type Claimed struct {
	WakeID     string        `json:"wake_id"`
	Generation uint64        `json:"generation"`
	Token      string        `json:"token"`
	Streams    []StreamState `json:"streams"`
	LeaseTTL   uint64        `json:"lease_ttl_ms"`
}

// Claim gives a worker the wake in flight or, when something is pending, a new one.
// Errors: [ErrNotFound], [ErrInvalid], a [*HeldError], [ErrNoWork].
func (e *Engine) Claim(ctx context.Context, scope Scope, id, worker string) (Claimed, error) {
	n, s, err := e.find(scope, id)
	if err != nil {
		return Claimed{}, err
	}
	switch {
	case !s.Pull:
		return Claimed{}, invalid("the subscription is not of type %s", typePull)
	case worker == "" || len(worker) > MaxWorker:
		return Claimed{}, invalid("worker must be 1 to %d bytes", MaxWorker)
	}
	streams, err := e.collect(ctx, n, MaxWakeStreams)
	if err != nil {
		return Claimed{}, err
	}
	// One that is in flight is given out in any case: nobody would be told of another
	// before it has ended.
	if len(streams) == 0 && !s.Woken(e.hot.Now()) {
		return Claimed{}, ErrNoWork
	}
	claimed, err := e.hot.Claim(ctx, hot.Claim{Of: s.Ref(), WakeID: newWakeID(), Worker: worker})
	if errors.Is(err, hot.ErrHeld) {
		return Claimed{}, &HeldError{Holder: claimed.Holder, Generation: claimed.Generation}
	}
	if err != nil {
		return Claimed{}, translate(err)
	}
	e.refresh(n, claimed)
	e.metrics.claims.Inc()
	// Whoever had it before may have acked since they were collected. From now on only
	// this worker moves cursors.
	if streams, err = e.again(n, claimed.Number, streams); err != nil {
		return Claimed{}, err
	}
	return Claimed{
		WakeID: claimed.WakeID, Generation: claimed.Generation, Token: e.keys.token(claimed),
		Streams: n.states(streams), LeaseTTL: claimed.LeaseTTL,
	}, nil
}

// Callback acks by the receiver of a webhook. It reports whether another wake follows.
// Errors: [ErrNotFound], [ErrInvalid], [ErrToken], [ErrTokenExpired], [ErrFenced],
// [ErrOffset].
func (e *Engine) Callback(ctx context.Context, scope Scope, id, token string, r AckRequest) (next bool, err error) {
	return e.ack(ctx, scope, id, token, r, false)
}

// Ack acks by the worker that has claimed a pull-wake, and keeps its lease. It reports
// whether another wake follows. Errors: as for Callback.
func (e *Engine) Ack(ctx context.Context, scope Scope, id, token string, r AckRequest) (next bool, err error) {
	return e.ack(ctx, scope, id, token, r, true)
}

// Release gives a claim back without an ack. Errors: as for Callback.
func (e *Engine) Release(ctx context.Context, scope Scope, id, token string, r WakeRequest) error {
	_, err := e.ack(ctx, scope, id, token, AckRequest{WakeRequest: r, Done: true}, true)
	return err
}

func (e *Engine) ack(ctx context.Context, scope Scope, id, token string, r AckRequest, pull bool) (next bool, err error) {
	n, s, err := e.find(scope, id)
	if err != nil {
		return false, err
	}
	if s.Pull != pull {
		return false, invalid("the subscription is of another type")
	}
	generation, err := e.keys.read(s.Number, token)
	if err != nil {
		return false, err
	}
	if generation != r.Generation || r.WakeID == "" {
		return false, ErrFenced
	}
	c := hot.Ack{Of: s.Ref(), Generation: r.Generation, WakeID: r.WakeID, Done: r.Done}
	if c.Acks, err = e.cursors(n, s, r); err != nil {
		return false, err
	}
	s, err = e.hot.Ack(ctx, c)
	if err != nil {
		return false, translate(err)
	}
	e.refresh(n, s)
	if !r.Done {
		return false, nil
	}
	left, err := e.collect(ctx, n, 1)
	return len(left) > 0, err
}

// cursors resolves what is acked. Streams that are gone, and what was acked before, are
// passed over: their news came too late, which is no fault of the worker.
func (e *Engine) cursors(n *entry, s *hot.Subscription, r AckRequest) ([]hot.CursorAck, error) {
	v := e.hot.View()
	defer v.Close()
	// A wake that is over is told so, whatever is acked with it.
	now, err := v.Subscription(s.Scope, s.ID)
	if err != nil {
		return nil, translate(err)
	}
	if now.Generation != r.Generation || now.WakeID != r.WakeID {
		return nil, ErrFenced
	}
	var acks []hot.CursorAck
	for _, a := range r.Acks {
		name, err := n.scope.Name(a.Stream)
		if err != nil {
			return nil, err
		}
		offset, err := stream.ParseOffset(a.Offset)
		if err != nil {
			return nil, invalid("acked offset %q is malformed", a.Offset)
		}
		st, linked, err := e.stateOf(v, n, s.Number, name)
		if err != nil {
			return nil, err
		}
		if !linked {
			return nil, invalid("stream %q is not linked", a.Stream)
		}
		rec, err := e.visible(v, name)
		if err != nil {
			return nil, err
		}
		if rec == nil {
			continue
		}
		pos, err := rec.Lives().Resolve(offset, rec.Tail)
		if err != nil {
			return nil, ErrOffset
		}
		if pos > st.acked.Position {
			acks = append(acks, hot.CursorAck{Name: name, Cursor: hot.CursorAt(rec, pos), Matched: n.matched(name)})
		}
	}
	return acks, nil
}
