package verify

import "firn/pkg/stream"

// seedSize is that of an Ed25519 key.
const seedSize = 32

// Subscription is the record of a subscription.
type Subscription struct {
	Scope, ID               string
	Pull                    bool
	URL                     string
	WakeStream              stream.Name
	Pattern                 string
	LeaseTTL                uint64
	Description, Root, Hash string
	CreatedAt, Revision     uint64
	Generation              uint64
	WakeID                  string
	Delivered               bool
	Holder                  string
	LeaseUntil              uint64
	Failures, NextAttempt   uint64
	Event                   stream.ID
}

// Link is the record of a subscription's cursor in a stream.
type Link struct {
	Explicit       bool
	Stream         stream.ID
	Life, Position uint64
}

// SigningKey is the record of a key that wakes are signed with.
type SigningKey struct {
	Number, CreatedAt, RetiredAt uint64
	Seed                         string
}

func (c *Catalog) addSubscription(scope, id string, value []byte) *input {
	v, version := versions(value)
	number := v.uvarint()
	if other, taken := c.Subscriptions[number]; taken {
		c.report(0, "subscriptions %q and %q have the number %d", other.ID, id, number)
	}
	s := Subscription{
		Scope: scope, ID: id, Pull: v.flag(), URL: v.text(), WakeStream: v.name(), Pattern: v.text(),
		LeaseTTL: v.uvarint(), Description: v.text(), Root: v.text(), Hash: v.text(),
		CreatedAt: v.uvarint(), Revision: v.uvarint(), Generation: v.uvarint(), WakeID: v.text(),
		Delivered: v.flag(), Holder: v.text(), LeaseUntil: v.uvarint(), Failures: v.uvarint(), NextAttempt: v.uvarint(),
	}
	if version > 1 {
		s.Event = v.id()
	}
	c.Subscriptions[number] = s
	return v
}

func (c *Catalog) addLink(number uint64, name stream.Name, v *input) {
	if c.Links[number] == nil {
		c.Links[number] = make(map[stream.Name]Link)
	}
	c.Links[number][name] = Link{Explicit: v.flag(), Stream: v.id(), Life: v.uvarint(), Position: v.uvarint()}
}

// checkSubscriptions: links belong to subscriptions and do not lead past the tails of
// streams, a wake has what it needs, and at most one signing key is active.
func (c *Catalog) checkSubscriptions() {
	for number, links := range c.Links {
		if _, ok := c.Subscriptions[number]; !ok {
			c.report(0, "subscription %d is gone, %d links are left", number, len(links))
		}
		for name, l := range links {
			s := c.Streams[l.Stream]
			if s != nil && (s.Name != name || l.Life != s.Life || l.Position > s.Tail) {
				c.report(l.Stream, "is linked to subscription %d as %q at %d of life %d", number, name, l.Position, l.Life)
			}
		}
	}
	for number, s := range c.Subscriptions {
		switch {
		case number > c.State.Life:
			c.report(0, "subscription %q has number %d, the last one given is %d", s.ID, number, c.State.Life)
		case s.Pull == (s.WakeStream == stream.Name{}) || s.Pull == (s.URL != ""):
			c.report(0, "subscription %q has a receiver of another type", s.ID)
		case s.WakeID == "" && (s.Holder != "" || s.LeaseUntil != 0 || s.Delivered || s.Event != 0):
			c.report(0, "subscription %q has a lease without a wake", s.ID)
		case !s.Pull && (s.Event != 0 || s.Holder != ""), s.Pull && s.Delivered == (s.Holder == "") && s.WakeID != "":
			c.report(0, "subscription %q has what only the other type has", s.ID)
		case s.WakeID != "" && s.Generation == 0:
			c.report(0, "subscription %q has a wake of no generation", s.ID)
		}
	}
	active := 0
	for _, k := range c.SigningKeys {
		if k.RetiredAt == 0 {
			active++
		}
		if len(k.Seed) != seedSize {
			c.report(0, "signing key %d has %d bytes", k.Number, len(k.Seed))
		}
	}
	if active > 1 || active == 0 && len(c.SigningKeys) > 0 {
		c.report(0, "%d signing keys are active", active)
	}
}
