package subscribe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"firn/internal/subscribe/webhook"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// Info is a subscription as clients see it (B§6.3).
type Info struct {
	ID             string       `json:"id"`
	SubscriptionID string       `json:"subscription_id"`
	Type           string       `json:"type"`
	Pattern        *string      `json:"pattern"`
	Streams        []LinkInfo   `json:"streams"`
	Truncated      bool         `json:"streams_truncated,omitempty"`
	Webhook        *WebhookInfo `json:"webhook,omitempty"`
	WakeStream     *string      `json:"wake_stream"`
	LeaseTTL       uint64       `json:"lease_ttl_ms"`
	CreatedAt      string       `json:"created_at"`
	Status         string       `json:"status"`
	Description    string       `json:"description,omitempty"`
}

// LinkInfo is one of a subscription's streams.
type LinkInfo struct {
	Path        string `json:"path"`
	LinkType    string `json:"link_type"`
	AckedOffset string `json:"acked_offset"`
}

// WebhookInfo is a receiver, and how it knows this server.
type WebhookInfo struct {
	URL     string      `json:"url"`
	Signing SigningInfo `json:"signing"`
}

// SigningInfo says where the keys of signatures are.
type SigningInfo struct {
	Alg     string `json:"alg"`
	Kid     string `json:"kid"`
	JWKSURL string `json:"jwks_url"`
}

// JWKS is the set of public keys (B§6.5).
type JWKS struct {
	Keys []webhook.JWK `json:"keys"`
}

// JWKS returns the keys that signatures of this server are verified with.
func (e *Engine) JWKS() JWKS { return JWKS{Keys: e.keys.public()} }

// Put makes a subscription, or confirms that it is as asked for. Root is the URL of
// the surface as the client addressed it. Streams that exist are linked at their tails,
// in the same commit. Errors: [ErrInvalid], [webhook.ErrTarget], [ErrExists],
// [ErrLimit].
func (e *Engine) Put(ctx context.Context, scope Scope, id string, c Config, root string) (i Info, created bool, err error) {
	k, err := c.check(scope, id, e.sender.Targets())
	if err != nil {
		return Info{}, false, err
	}
	if len(root) > MaxRoot {
		return Info{}, false, invalid("the URL of this server is longer than %d bytes", MaxRoot)
	}
	k.sub.Root = root
	e.admin.Lock()
	defer e.admin.Unlock()
	_, old, err := e.find(scope, id)
	if err != nil {
		if old, err = e.create(ctx, k); err != nil {
			return Info{}, false, err
		}
		created = true
	}
	if old.Hash != k.sub.Hash {
		return Info{}, false, ErrExists
	}
	i, err = e.Get(ctx, scope, id, root)
	return i, created, err
}

// create commits a subscription. It is in the index before the view is taken that its
// cursors are read from, so that no growth after it goes unnoticed.
func (e *Engine) create(ctx context.Context, k checked) (*hot.Subscription, error) {
	n, err := newEntry(&k.sub)
	if err != nil {
		return nil, err
	}
	n.sub, n.unknown = nil, false
	for _, name := range k.streams {
		n.explicit[name] = struct{}{}
	}
	e.mu.Lock()
	full := len(e.entries) >= e.opts.Subscriptions
	if !full {
		e.insert(n)
	}
	e.mu.Unlock()
	if full {
		return nil, fmt.Errorf("%w: %d subscriptions", ErrLimit, e.opts.Subscriptions)
	}
	s, err := e.commit(ctx, n, k)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		e.drop(n)
		return nil, err
	}
	n.sub = s
	e.look(n) // streams may have grown between the view and the commit
	return s, nil
}

func (e *Engine) commit(ctx context.Context, n *entry, k checked) (*hot.Subscription, error) {
	links, err := e.links(k.streams)
	if err != nil {
		return nil, err
	}
	err = e.matching(ctx, n, func(v *hot.View, name stream.Name) error {
		if _, ok := n.explicit[name]; ok {
			return nil
		}
		if len(links) >= e.opts.Backfill {
			return fmt.Errorf("%w: the pattern matches more than %d streams", ErrLimit, e.opts.Backfill)
		}
		l, exists, err := e.link(v, name)
		if exists {
			links = append(links, l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r, err := e.hot.PutSubscription(ctx, hot.PutSubscription{Subscription: k.sub, Links: links})
	return r.Subscription, err
}

// links links streams explicitly, at their tails.
func (e *Engine) links(names []stream.Name) ([]hot.Link, error) {
	v := e.hot.View()
	defer v.Close()
	list := make([]hot.Link, 0, len(names))
	for _, name := range names {
		l, _, err := e.link(v, name)
		if err != nil {
			return nil, err
		}
		l.Explicit = true
		list = append(list, l)
	}
	return list, nil
}

// link is a link to the tail of a stream; one that does not exist will be pending from
// its beginning.
func (e *Engine) link(v *hot.View, name stream.Name) (l hot.Link, exists bool, err error) {
	l.Name = name
	rec, err := e.visible(v, name)
	if err != nil || rec == nil {
		return l, false, err
	}
	l.Cursor = hot.CursorAt(rec, rec.Tail)
	return l, true, nil
}

// Delete removes a subscription; its wakes are fenced. It is no error if there is none.
func (e *Engine) Delete(ctx context.Context, scope Scope, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	e.admin.Lock()
	defer e.admin.Unlock()
	if err := e.hot.DropSubscription(ctx, string(scope), id); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := e.entries[key{scope, id}]; n != nil {
		e.drop(n)
	}
	return nil
}

// AddStreams links streams explicitly, new ones at their tails (B§6.4). Errors:
// [ErrNotFound], [ErrInvalid], [ErrLimit].
func (e *Engine) AddStreams(ctx context.Context, scope Scope, id string, paths []string) error {
	names, err := scope.names(paths)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return invalid("streams is required")
	}
	e.admin.Lock()
	defer e.admin.Unlock()
	n, s, err := e.find(scope, id)
	if err != nil {
		return err
	}
	if slices.Contains(names, n.own) {
		return invalid("a subscription cannot wait for its own wake_stream")
	}
	e.mu.Lock()
	names = slices.DeleteFunc(names, func(name stream.Name) bool { _, ok := n.explicit[name]; return ok })
	full := len(n.explicit)+len(names) > e.opts.Links
	if !full {
		e.addExplicit(n, names)
	}
	e.mu.Unlock()
	if full {
		return fmt.Errorf("%w: %d explicit streams", ErrLimit, e.opts.Links)
	}
	links, err := e.explicitLinks(n, s.Number, names)
	if err == nil {
		err = e.hot.AddLinks(ctx, hot.AddLinks{Of: s.Ref(), Links: links})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		for _, name := range names {
			delete(n.explicit, name)
			e.index.explicit.remove(name, n)
		}
		return translate(err)
	}
	for _, name := range names {
		e.mark(n, name) // it may have grown between the view and the commit
	}
	return nil
}

func (e *Engine) addExplicit(n *entry, names []stream.Name) {
	for _, name := range names {
		n.explicit[name] = struct{}{}
		e.index.explicit.add(name, n)
	}
}

// explicitLinks are at the tails of streams, but where the pattern has linked one
// already: that is where the subscription stands in it.
func (e *Engine) explicitLinks(n *entry, number uint64, names []stream.Name) ([]hot.Link, error) {
	links, err := e.links(names)
	if err != nil {
		return nil, err
	}
	v := e.hot.View()
	defer v.Close()
	for i, l := range links {
		if !n.matched(l.Name) {
			continue
		}
		s, _, err := e.stateOf(v, n, number, l.Name)
		if err != nil {
			return nil, err
		}
		links[i].Cursor = s.acked
	}
	return links, nil
}

// RemoveStream takes an explicit link away; the pattern may go on linking the stream
// (B§6.4). It is no error if there is none. Errors: [ErrNotFound], [ErrInvalid].
func (e *Engine) RemoveStream(ctx context.Context, scope Scope, id, path string) error {
	name, err := scope.Name(path)
	if err != nil {
		return err
	}
	e.admin.Lock()
	defer e.admin.Unlock()
	n, s, err := e.find(scope, id)
	if err != nil {
		return err
	}
	err = e.hot.DropLink(ctx, hot.DropLink{Of: s.Ref(), Name: name, Keep: n.matched(name)})
	if err != nil {
		return translate(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(n.explicit, name)
	e.index.explicit.remove(name, n)
	return nil
}

// Get returns a subscription with at most Options.Links of its streams. Errors:
// [ErrNotFound].
func (e *Engine) Get(ctx context.Context, scope Scope, id, root string) (Info, error) {
	n, s, err := e.find(scope, id)
	if err != nil {
		return Info{}, err
	}
	i := Info{
		ID: id, SubscriptionID: id, Type: typeWebhook, LeaseTTL: s.LeaseTTL, Status: "active",
		CreatedAt:   time.UnixMilli(int64(s.CreatedAt)).UTC().Format("2006-01-02T15:04:05.000Z"),
		Description: s.Description,
	}
	if s.Pattern != "" {
		i.Pattern = &s.Pattern
	}
	if s.Failures > 0 {
		i.Status = "failed"
	}
	if s.Pull {
		path := scope.path(s.WakeStream)
		i.Type, i.WakeStream = typePull, &path
	} else {
		i.Webhook = &WebhookInfo{URL: s.URL, Signing: SigningInfo{
			Alg: "ed25519", Kid: e.keys.signer().ID, JWKSURL: root + "/__ds/jwks.json",
		}}
	}
	i.Streams, i.Truncated, err = e.listed(ctx, n, s.Number)
	return i, err
}

// listed returns the streams of a subscription in the order of their paths: the
// explicit ones, whether they exist or not, and those that the pattern links.
func (e *Engine) listed(ctx context.Context, n *entry, number uint64) (list []LinkInfo, truncated bool, err error) {
	list = []LinkInfo{}
	add := func(v *hot.View, name stream.Name) error {
		s, linked, err := e.stateOf(v, n, number, name)
		if err == nil && linked {
			list = append(list, LinkInfo{
				Path: n.scope.path(name), LinkType: linkType(s.explicit), AckedOffset: s.acked.Offset().String(),
			})
		}
		return err
	}
	e.mu.Lock()
	explicit := make(map[stream.Name]struct{}, len(n.explicit))
	for name := range n.explicit {
		explicit[name] = struct{}{}
	}
	e.mu.Unlock()
	v := e.hot.View()
	for name := range explicit {
		if err = add(v, name); err != nil {
			break
		}
	}
	v.Close()
	if err != nil {
		return nil, false, err
	}
	err = e.matching(ctx, n, func(v *hot.View, name stream.Name) error {
		if _, ok := explicit[name]; ok {
			return nil
		}
		if len(list) >= e.opts.Links {
			truncated = true
			return errFull
		}
		rec, err := e.visible(v, name)
		if err != nil || rec == nil {
			return err
		}
		return add(v, name)
	})
	if truncated {
		err = nil
	}
	slices.SortFunc(list, func(a, b LinkInfo) int { return strings.Compare(a.Path, b.Path) })
	return list, truncated, err
}
