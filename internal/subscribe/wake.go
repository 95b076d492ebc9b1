package subscribe

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"time"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// StreamState is a stream in a wake (B§7.1).
type StreamState struct {
	Path        string `json:"path"`
	LinkType    string `json:"link_type"`
	AckedOffset string `json:"acked_offset"`
	TailOffset  string `json:"tail_offset"`
	HasPending  bool   `json:"has_pending"`
}

// notification is what a webhook carries.
type notification struct {
	SubscriptionID string        `json:"subscription_id"`
	WakeID         string        `json:"wake_id"`
	Generation     uint64        `json:"generation"`
	Streams        []StreamState `json:"streams"`
	CallbackURL    string        `json:"callback_url"`
	CallbackToken  string        `json:"callback_token"`
}

// event is what a pull-wake writes (B§7.2).
type event struct {
	Type           string `json:"type"`
	SubscriptionID string `json:"subscription_id"`
	Stream         string `json:"stream"`
	Generation     uint64 `json:"generation"`
	TS             uint64 `json:"ts"`
}

// rest is how long a subscription is left alone, in ms, after trouble of the server.
const rest = 1000

// wake wakes whoever waits for a subscription, if there is still reason to.
func (e *Engine) wake(ctx context.Context, n *entry) {
	err := e.attempt(ctx, n)
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, hot.ErrNoSubscription):
		return
	case errors.Is(err, hot.ErrConflict), errors.Is(err, hot.ErrFenced):
		// A worker was faster; look at what it did.
		err = e.reload(n)
	}
	if err == nil {
		return
	}
	if !errors.Is(err, stream.ErrUnavailable) {
		e.log.Error("cannot wake a subscription", "subscription", n.id, "err", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n.rest = e.hot.Now() + rest
}

func (e *Engine) reload(n *entry) error {
	v := e.hot.View()
	defer v.Close()
	s, err := v.Subscription(string(n.scope), n.id)
	if errors.Is(err, hot.ErrNoSubscription) {
		return nil
	}
	if err == nil {
		e.refresh(n, s)
	}
	return err
}

func (e *Engine) attempt(ctx context.Context, n *entry) (err error) {
	streams, err := e.collect(ctx, n, MaxWakeStreams)
	if err != nil || len(streams) == 0 {
		return err
	}
	e.mu.Lock()
	s, lost := n.sub, n.lost
	n.lost = false // what the commit sees counts, and what is told after it
	e.mu.Unlock()
	if lost {
		defer func() { e.doubt(n, err) }()
	}
	c := hot.Wake{Of: s.Ref(), Generation: s.Generation, WakeID: newWakeID()}
	if s.Pull {
		return e.write(ctx, n, s, c, streams)
	}
	s, err = e.hot.Wake(ctx, c)
	if err != nil {
		return err
	}
	e.refresh(n, s)
	return e.send(ctx, n, s, streams)
}

// doubt goes on taking a wake for lost if no commit has found out.
func (e *Engine) doubt(n *entry, err error) {
	if err == nil || errors.Is(err, hot.ErrConflict) || errors.Is(err, hot.ErrFenced) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n.lost = true
}

// newWakeID is unique: it has at least 128 random bits.
func newWakeID() string { return "w_" + rand.Text() }

// write puts a wake into the wake stream, event and generation in one commit. What the
// stream refuses is tried again as a webhook is.
func (e *Engine) write(ctx context.Context, n *entry, s *hot.Subscription, c hot.Wake, streams []state) error {
	v := e.hot.View()
	target, err := e.visible(v, s.WakeStream)
	v.Close()
	if err != nil {
		return err
	}
	if target == nil {
		return e.failed(ctx, n, s, stream.ErrNotFound)
	}
	c.Stream = target.ID
	c.Event = append(encode(event{
		Type: "wake", SubscriptionID: n.id, Stream: n.scope.path(streams[0].name),
		Generation: s.Generation + 1, TS: e.hot.Now(),
	}), '\n')
	woken, err := e.hot.Wake(ctx, c)
	switch {
	case err == nil:
		e.metrics.wakes.WithLabelValues(typePull).Inc()
		e.refresh(n, woken)
		return nil
	case errors.Is(err, hot.ErrConflict), errors.Is(err, hot.ErrNoSubscription), errors.Is(err, stream.ErrUnavailable), ctx.Err() != nil:
		return err
	}
	return e.failed(ctx, n, s, err)
}

// send posts a wake and records what became of it.
func (e *Engine) send(ctx context.Context, n *entry, s *hot.Subscription, streams []state) error {
	body := encode(notification{
		SubscriptionID: n.id, WakeID: s.WakeID, Generation: s.Generation, Streams: n.states(streams),
		CallbackURL:   s.Root + "/__ds/subscriptions/" + url.PathEscape(n.id) + "/callback",
		CallbackToken: e.keys.token(s),
	})
	e.metrics.wakes.WithLabelValues(typeWebhook).Inc()
	began := time.Now()
	lease, cancel := context.WithTimeout(ctx, time.Duration(s.LeaseTTL)*time.Millisecond)
	defer cancel()
	signature := e.keys.signer().Sign(time.UnixMilli(int64(e.hot.Now())), body)
	answer, err := e.sender.Send(lease, s.URL, body, signature)
	if ctx.Err() != nil {
		return ctx.Err() // the next start finds a wake that was never confirmed
	}
	e.metrics.webhookSeconds.Observe(time.Since(began).Seconds())
	if err != nil {
		return e.failed(ctx, n, s, err)
	}
	e.metrics.attempts.WithLabelValues("ok").Inc()
	var said struct {
		Done bool `json:"done"`
	}
	if json.Unmarshal(answer, &said) == nil && said.Done {
		c := hot.Ack{Of: s.Ref(), Generation: s.Generation, WakeID: s.WakeID, Done: true}
		for _, st := range streams {
			c.Acks = append(c.Acks, hot.CursorAck{Name: st.name, Cursor: st.tail, Matched: n.matched(st.name)})
		}
		s, err = e.hot.Ack(ctx, c)
	} else {
		s, err = e.hot.Attempted(ctx, hot.Attempted{Of: s.Ref(), Generation: s.Generation, WakeID: s.WakeID})
	}
	if err != nil {
		return err
	}
	e.refresh(n, s)
	return nil
}

// failed schedules the next attempt, unless somebody has got the wake all the same:
// [hot.ErrFenced].
func (e *Engine) failed(ctx context.Context, n *entry, s *hot.Subscription, cause error) error {
	wait := backoff(s.Failures+1, e.opts.Chance())
	s, err := e.hot.Attempted(ctx, hot.Attempted{
		Of: s.Ref(), Generation: s.Generation, WakeID: s.WakeID,
		NextAttempt: e.hot.Now() + uint64(wait.Milliseconds()),
	})
	if err != nil {
		return err
	}
	e.metrics.attempts.WithLabelValues("failed").Inc()
	level := slog.LevelDebug
	if s.Failures == 1 {
		level = slog.LevelWarn
	}
	e.log.Log(ctx, level, "subscription cannot be woken", "subscription", n.id, "failures", s.Failures, "wait", wait, "err", cause)
	e.refresh(n, s)
	return nil
}

// states renders streams.
func (n *entry) states(streams []state) []StreamState {
	list := make([]StreamState, 0, len(streams))
	for _, s := range streams {
		list = append(list, StreamState{
			Path: n.scope.path(s.name), LinkType: linkType(s.explicit),
			AckedOffset: s.acked.Offset().String(), TailOffset: s.tail.Offset().String(), HasPending: s.pending(),
		})
	}
	return list
}

func linkType(explicit bool) string {
	if explicit {
		return "explicit"
	}
	return "glob"
}

// encode is JSON that keeps paths readable.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // strings, numbers and flags
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
