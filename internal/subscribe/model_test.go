package subscribe_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"firn/internal/subscribe"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// model is what is known of a subscription.
type model struct {
	scope subscribe.Scope
	id    string
	wakes string // its wake stream, empty for a webhook
	// acked is how far the cursors are. Of a webhook it is how far they may be.
	acked map[string]stream.Offset

	lease  uint64 // ms
	held   *subscribe.Claimed
	until  int64 // ms, the end of held's lease
	stale  []subscribe.Claimed
	latest uint64 // the highest generation that was claimed or delivered
}

func (w *world) links(s *model) map[string]stream.Offset {
	i, err := w.r.Get(bg, s.scope, s.id, root)
	w.r.must(err)
	list := make(map[string]stream.Offset)
	for _, l := range i.Streams {
		at, err := stream.ParseOffset(l.AckedOffset)
		w.r.must(err)
		list[l.Path] = stream.Offset{Life: at.Life, Position: at.Position}
	}
	return list
}

// stored is the record of a subscription.
func (w *world) stored(s *model) hot.Subscription {
	v := w.r.hot.View()
	defer v.Close()
	sub, err := v.Subscription(string(s.scope), s.id)
	w.r.must(err)
	return *sub
}

// look checks a subscription.
func (w *world) look() {
	if len(w.subs) > 0 {
		w.check(pick(w, w.subs))
	}
}

// check compares the cursors of a subscription with the model: they are where the
// worker has put them, and of a webhook not further than the receiver has said.
func (w *world) check(s *model) {
	w.r.t.Helper()
	links := w.links(s)
	w.mu.Lock()
	got := w.got // after the cursors, which follow answers
	w.mu.Unlock()
	for path, at := range links {
		rec := w.record(s.scope, path)
		if rec == nil {
			continue
		}
		if at.Life != rec.Life || at.Position > rec.Tail || at.Position < rec.Base {
			w.r.t.Errorf("%s: cursor in %s is %s, the stream has %d to %s", s.id, path, at, rec.Base, rec.TailOffset())
		}
		want, known := s.acked[path]
		if s.wakes == "" {
			for _, d := range got {
				if d.SubscriptionID == s.id && d.done {
					want.Position = max(want.Position, d.tailOf(path))
				}
			}
		}
		switch {
		case !known:
			s.acked[path] = at
		case s.wakes != "" && at != want, at.Position > want.Position:
			w.r.t.Errorf("%s: cursor in %s is %s, the model has %s", s.id, path, at, want)
		}
	}
}

// tailOf is the position that a webhook has named as the tail of a stream.
func (d delivery) tailOf(path string) uint64 {
	for _, s := range d.Streams {
		if s.Path == path {
			if at, err := stream.ParseOffset(s.TailOffset); err == nil {
				return at.Position
			}
		}
	}
	return 0
}

// checkEvent: if something is pending and nobody has claimed it, the wake stream says so.
func (w *world) checkEvent(s *model) {
	w.r.t.Helper()
	pending := false
	for path, at := range w.links(s) {
		rec := w.record(s.scope, path)
		pending = pending || rec != nil && at != rec.TailOffset()
	}
	if !pending {
		return
	}
	v := w.r.hot.View()
	defer v.Close()
	sub, rec := w.stored(s), w.record(s.scope, s.wakes)
	b, err := v.Data(nil, rec.ID, rec.Cut, rec.Tail)
	w.r.must(err)
	event := fmt.Sprintf(`"subscription_id":%q,`, s.id)
	if !sub.Woken(w.r.hot.Now()) || !strings.Contains(string(b), event) || !strings.Contains(string(b), fmt.Sprintf(`"generation":%d,`, sub.Generation)) {
		w.r.t.Errorf("%s: nobody learns of what is pending: %+v, events %s", s.id, sub, b)
	}
}

func (w *world) subscribe() {
	s := pick(w, []subscribe.Scope{subscribe.Flat, subscribe.Bucketed})
	m := &model{
		scope: s, id: fmt.Sprintf("%d-%d", w.IntN(3), len(s)), acked: make(map[string]stream.Offset),
		lease: pick(w, []uint64{1000, 5000, 30_000}),
	}
	if slices.ContainsFunc(w.subs, func(o *model) bool { return o.scope == s && o.id == m.id }) {
		return
	}
	c := subscribe.Config{Type: "webhook", LeaseTTL: &m.lease, Webhook: &subscribe.WebhookConfig{URL: w.receiver.URL}}
	globs := bucketedGlobs
	if s == subscribe.Flat {
		globs = flatGlobs
	}
	if w.chance(2) { // events must not wake each other for ever, so no "**" here
		m.wakes = map[subscribe.Scope]string{subscribe.Flat: pick(w, []string{"wakes/0", "wakes/1"}), subscribe.Bucketed: "trial/wakes"}[s]
		c.Type, c.WakeStream, c.Webhook = "pull-wake", m.wakes, nil
		globs = globs[:len(globs)-1]
	}
	c.Pattern = pick(w, globs)
	if w.chance(2) {
		c.Streams = w.some(s)
	}
	_, created, err := w.r.Put(bg, s, m.id, c, root)
	w.r.must(err)
	if !created {
		w.r.t.Fatalf("%s was there already", m.id)
	}
	w.subs = append(w.subs, m)
}

// some are paths but for wake streams.
func (w *world) some(s subscribe.Scope) (list []string) {
	for range 1 + w.IntN(3) {
		if path := pick(w, w.paths(s)); !strings.Contains(path, "wakes") {
			list = append(list, path)
		}
	}
	return list
}

func (w *world) unsubscribe() {
	if len(w.subs) == 0 {
		return
	}
	i := w.IntN(len(w.subs))
	s := w.subs[i]
	w.r.must(w.r.Delete(bg, s.scope, s.id))
	w.subs = slices.Delete(w.subs, i, i+1)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.got = slices.DeleteFunc(slices.Clone(w.got), func(d delivery) bool { return d.SubscriptionID == s.id })
}

func (w *world) link() {
	if len(w.subs) == 0 {
		return
	}
	s := pick(w, w.subs)
	if list := w.some(s.scope); len(list) > 0 {
		w.r.must(w.r.AddStreams(bg, s.scope, s.id, list))
	}
}

func (w *world) unlink() {
	if len(w.subs) == 0 {
		return
	}
	s := pick(w, w.subs)
	links := slices.Sorted(maps.Keys(w.links(s)))
	if len(links) == 0 {
		return
	}
	path := pick(w, links)
	w.r.must(w.r.RemoveStream(bg, s.scope, s.id, path))
	if _, linked := w.links(s)[path]; !linked {
		delete(s.acked, path)
	}
}

// puller is a pull-wake subscription that the model takes for held, or not; nil if
// there is none.
func (w *world) puller(held bool) *model {
	var list []*model
	for _, s := range w.subs {
		if s.wakes != "" && (s.held != nil && w.r.clock.ms.Load() < s.until) == held {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(w, list)
}

func (w *world) claim() {
	if s := w.puller(w.chance(3)); s != nil {
		w.claimOf(s)
	}
}

// claimOf claims: only one worker may hold a subscription.
func (w *world) claimOf(s *model) bool {
	w.r.t.Helper()
	c, err := w.r.Claim(bg, s.scope, s.id, "w")
	now := w.r.clock.ms.Load()
	held := s.held != nil && now < s.until
	switch {
	case err == nil && held:
		w.r.t.Errorf("%s: two workers hold it, generations %d and %d", s.id, s.held.Generation, c.Generation)
	case err == nil && c.Generation <= s.latest && s.held != nil:
		w.r.t.Errorf("%s: generation %d after %d", s.id, c.Generation, s.latest)
	case errors.As(err, new(*subscribe.HeldError)) != held:
		w.r.t.Errorf("%s: claim: %v, the model has it held: %v", s.id, err, held)
	case err != nil && !held && !errors.Is(err, subscribe.ErrNoWork):
		w.r.t.Errorf("%s: claim: %v", s.id, err)
	}
	if err != nil {
		return false
	}
	if s.held != nil {
		s.stale = append(s.stale, *s.held)
	}
	s.held, s.until, s.latest = &c, now+int64(s.lease), c.Generation
	for _, st := range c.Streams {
		at, err := stream.ParseOffset(st.AckedOffset)
		w.r.must(err)
		if want, known := s.acked[st.Path]; known && want.Position != at.Position {
			w.r.t.Errorf("%s: claimed %s from %s, the model has %s", s.id, st.Path, at, want)
		}
	}
	return true
}

// partly acks some of what a wake lists, up to somewhere.
func (w *world) partly(streams []subscribe.StreamState) (list []subscribe.StreamAck, at map[string]stream.Offset) {
	at = make(map[string]stream.Offset)
	for _, s := range streams {
		from, err := stream.ParseOffset(s.AckedOffset)
		w.r.must(err)
		to, err := stream.ParseOffset(s.TailOffset)
		w.r.must(err)
		if w.chance(4) {
			continue
		}
		if w.chance(3) {
			to.Position = from.Position + (to.Position-from.Position)/4*2
		}
		o := stream.Offset{Life: to.Life, Position: to.Position}
		list = append(list, subscribe.StreamAck{Stream: s.Path, Offset: o.String()})
		at[s.Path] = o
	}
	return list, at
}

// moved notes acks that were taken.
func (w *world) moved(s *model, at map[string]stream.Offset) {
	for path, o := range at {
		if rec := w.record(s.scope, path); rec != nil && rec.Life == o.Life {
			if was, known := s.acked[path]; !known || o.Position > was.Position {
				s.acked[path] = o
			}
		}
	}
}

func (w *world) ack() {
	s := w.puller(true)
	if s == nil {
		return
	}
	acks, at := w.partly(s.held.Streams)
	a := subscribe.AckRequest{WakeRequest: subscribe.WakeRequest{WakeID: s.held.WakeID, Generation: s.held.Generation}, Acks: acks, Done: w.chance(2)}
	w.acked(s, a, at)
}

func (w *world) ackAll(s *model) {
	a := ackOf(s.held.WakeID, s.held.Generation, s.held.Streams, true)
	at := make(map[string]stream.Offset)
	for _, st := range s.held.Streams {
		o, err := stream.ParseOffset(st.TailOffset)
		w.r.must(err)
		at[st.Path] = stream.Offset{Life: o.Life, Position: o.Position}
	}
	w.acked(s, a, at)
}

// acked sends the ack of a worker who holds the wake. It may be refused for what it
// acks, as streams come and go, but not for who sends it.
func (w *world) acked(s *model, a subscribe.AckRequest, at map[string]stream.Offset) {
	w.r.t.Helper()
	_, err := w.r.Ack(bg, s.scope, s.id, s.held.Token, a)
	switch {
	case errors.Is(err, subscribe.ErrInvalid), errors.Is(err, subscribe.ErrOffset):
		return
	case err != nil:
		w.r.t.Errorf("%s: ack by the holder: %v", s.id, err)
		return
	}
	w.moved(s, at)
	if s.until = w.r.clock.ms.Load() + int64(s.lease); a.Done {
		w.over(s)
	}
}

// over ends a claim.
func (w *world) over(s *model) {
	s.stale = append(s.stale, *s.held)
	s.until = 0
}

func (w *world) release() {
	s := w.puller(true)
	if s == nil {
		return
	}
	w.r.must(w.r.Release(bg, s.scope, s.id, s.held.Token, subscribe.WakeRequest{WakeID: s.held.WakeID, Generation: s.held.Generation}))
	w.over(s)
}

// ackStale acks for a wake that is over. It must be fenced, and move nothing.
func (w *world) ackStale() {
	s := w.puller(false)
	if s == nil || s.held == nil {
		return
	}
	c := pick(w, append(s.stale, *s.held))
	_, err := w.r.Ack(bg, s.scope, s.id, c.Token, ackOf(c.WakeID, c.Generation, c.Streams, w.chance(2)))
	switch {
	case errors.Is(err, subscribe.ErrFenced):
	case errors.Is(err, subscribe.ErrOffset), errors.Is(err, subscribe.ErrInvalid):
		// The lease has ended without a successor; the acks are looked at first.
	default:
		w.r.t.Errorf("%s: stale ack: %v", s.id, err)
	}
	w.check(s)
}

// callback answers a webhook late. It may come too late, but then it moves nothing.
func (w *world) callback() {
	w.mu.Lock()
	got := w.got
	w.mu.Unlock()
	if len(got) == 0 {
		return
	}
	d := got[max(0, len(got)-1-w.IntN(4))]
	i := slices.IndexFunc(w.subs, func(s *model) bool { return s.id == d.SubscriptionID })
	if i < 0 {
		return
	}
	s := w.subs[i]
	for _, o := range got {
		if o.SubscriptionID == s.id && o.CallbackToken != d.CallbackToken {
			s.latest = max(s.latest, o.Generation)
		}
	}
	acks, at := w.partly(d.Streams)
	_, err := w.r.Callback(bg, s.scope, s.id, d.CallbackToken, subscribe.AckRequest{
		WakeRequest: subscribe.WakeRequest{WakeID: d.WakeID, Generation: d.Generation}, Acks: acks, Done: w.chance(2),
	})
	switch {
	case err == nil:
		w.moved(s, at)
	case errors.Is(err, subscribe.ErrFenced), errors.Is(err, subscribe.ErrOffset), errors.Is(err, subscribe.ErrInvalid), errors.Is(err, subscribe.ErrToken):
	default:
		w.r.t.Errorf("%s: callback: %v", s.id, err)
	}
}
