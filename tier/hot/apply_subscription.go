package hot

import "fmt"

// eventType is the content type of what a pull-wake appends (B§7.2).
const eventType = "application/json"

// applySubscription is the part of apply that is about subscriptions.
func (t *txn) applySubscription(command any) (any, error) {
	switch c := command.(type) {
	case PutSubscription:
		return t.putSubscription(c)
	case DropSubscription:
		return nil, t.dropSubscription(c)
	case AddLinks:
		return nil, t.addLinks(c)
	case DropLink:
		return nil, t.dropLink(c)
	case SweepLinks:
		return nil, t.sweepLinks(c)
	case Wake:
		return t.wake(c)
	case Attempted:
		return t.attempted(c)
	case Claim:
		return t.claimWake(c)
	case Ack:
		return t.ack(c)
	case AddSigningKey:
		return nil, t.addSigningKey(c)
	case DropSigningKeys:
		return nil, t.dropSigningKeys(c)
	}
	panic(fmt.Sprintf("unknown command %T", command))
}

func (t *txn) putSubscription(c PutSubscription) (PutResult, error) {
	s := c.Subscription
	old, err := loadSubscription(t.batch, s.Scope, s.ID)
	if err != nil {
		return PutResult{}, err
	}
	if old != nil {
		return PutResult{Subscription: old}, nil
	}
	t.state.Life = max(t.state.Life+1, t.now)
	s.Number, s.CreatedAt, s.Revision = t.state.Life, t.now, 1
	for _, l := range c.Links {
		if err := t.set(keyLink(s.Number, l.Name), l.encode()); err != nil {
			return PutResult{}, err
		}
	}
	return PutResult{Subscription: &s, Created: true}, t.set(keySubscription(s.Scope, s.ID), s.encode())
}

func (t *txn) dropSubscription(c DropSubscription) error {
	s, err := loadSubscription(t.batch, c.Scope, c.ID)
	if err != nil || s == nil {
		return err
	}
	links := keyLinkPrefix(s.Number)
	if err := t.batch.DeleteRange(links, keyAfter(links), nil); err != nil {
		return err
	}
	return t.delete(keySubscription(c.Scope, c.ID))
}

// subscription returns the record that a command means, for it to change.
func (t *txn) subscription(r SubscriptionRef) (*Subscription, error) {
	s, err := loadSubscription(t.batch, r.Scope, r.ID)
	if err == nil && (s == nil || s.Number != r.Number) {
		err = ErrNoSubscription
	}
	return s, err
}

func (t *txn) saveSubscription(s *Subscription) (*Subscription, error) {
	s.Revision++
	return s, t.set(keySubscription(s.Scope, s.ID), s.encode())
}

func (t *txn) addLinks(c AddLinks) error {
	if _, err := t.subscription(c.Of); err != nil {
		return err
	}
	for _, l := range c.Links {
		old, err := loadLink(t.batch, c.Of.Number, l.Name)
		if err != nil {
			return err
		}
		if old != nil {
			l = *old
		}
		l.Explicit = true
		if err := t.set(keyLink(c.Of.Number, l.Name), l.encode()); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) dropLink(c DropLink) error {
	if _, err := t.subscription(c.Of); err != nil {
		return err
	}
	l, err := loadLink(t.batch, c.Of.Number, c.Name)
	switch {
	case err != nil || l == nil || !l.Explicit:
		return err
	case c.Keep:
		rec, err := t.stream(l.Stream)
		if err != nil {
			return err
		}
		if rec != nil {
			l.Explicit = false
			return t.set(keyLink(c.Of.Number, c.Name), l.encode())
		}
	}
	return t.delete(keyLink(c.Of.Number, c.Name))
}

func (t *txn) sweepLinks(c SweepLinks) error {
	if _, err := t.subscription(c.Of); err != nil {
		return err
	}
	for _, n := range c.Names {
		l, err := loadLink(t.batch, c.Of.Number, n)
		if err != nil {
			return err
		}
		if l == nil || l.Explicit {
			continue
		}
		rec, err := t.stream(l.Stream)
		if err != nil {
			return err
		}
		if rec != nil {
			continue
		}
		if err := t.delete(keyLink(c.Of.Number, n)); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) wake(c Wake) (any, error) {
	s, err := t.subscription(c.Of)
	if err != nil {
		return nil, err
	}
	if inFlight, err := t.inFlight(s); err != nil || inFlight || s.Generation != c.Generation {
		return nil, errOr(err, ErrConflict)
	}
	if s.Pull {
		event := &Append{ID: c.Stream, ContentType: eventType, Payload: c.Event}
		if _, err := t.append(event); err != nil {
			return nil, err
		}
	}
	s.begin(c.WakeID)
	if s.Pull {
		s.Event, s.Failures, s.NextAttempt = c.Stream, 0, 0
	} else {
		s.LeaseUntil = t.now + s.LeaseTTL
	}
	return t.saveSubscription(s)
}

// inFlight reports whether no other wake may begin: somebody has the current one, or
// its event waits for somebody.
func (t *txn) inFlight(s *Subscription) (bool, error) {
	switch {
	case !s.Woken(t.now):
		return false, nil
	case s.Delivered || !s.Pull:
		return s.Delivered, nil
	}
	rec, err := t.stream(s.Event)
	return rec != nil, err
}

// begin gives the subscription its next wake, which nobody holds.
func (s *Subscription) begin(wakeID string) {
	s.end()
	s.Generation++
	s.WakeID = wakeID
}

// end takes the wake and its lease away.
func (s *Subscription) end() {
	s.WakeID, s.Delivered, s.Holder, s.LeaseUntil, s.Event = "", false, "", 0, 0
}

func (t *txn) attempted(c Attempted) (any, error) {
	s, err := t.subscription(c.Of)
	if err != nil {
		return nil, err
	}
	if s.Generation != c.Generation || s.WakeID != c.WakeID {
		return nil, ErrFenced
	}
	if c.NextAttempt == 0 {
		s.Delivered, s.Failures, s.NextAttempt = true, 0, 0
		return t.saveSubscription(s)
	}
	if inFlight, err := t.inFlight(s); err != nil || inFlight {
		return nil, errOr(err, ErrFenced)
	}
	s.end()
	s.Failures++
	s.NextAttempt = c.NextAttempt
	return t.saveSubscription(s)
}

func (t *txn) claimWake(c Claim) (any, error) {
	s, err := t.subscription(c.Of)
	if err != nil {
		return nil, err
	}
	switch woken := s.Woken(t.now); {
	case woken && s.Holder != "":
		return s, ErrHeld
	case !woken:
		s.begin(c.WakeID)
	}
	s.Holder, s.LeaseUntil, s.Delivered = c.Worker, t.now+s.LeaseTTL, true
	s.Failures, s.NextAttempt = 0, 0
	return t.saveSubscription(s)
}

func (t *txn) ack(c Ack) (any, error) {
	s, err := t.subscription(c.Of)
	if err != nil {
		return nil, err
	}
	// A pull-wake that nobody has claimed has no lease, and no token either.
	if s.Generation != c.Generation || s.WakeID != c.WakeID || !s.Leased(t.now) {
		return nil, ErrFenced
	}
	for _, a := range c.Acks {
		if err := t.moveCursor(s.Number, a); err != nil {
			return nil, err
		}
	}
	s.Failures, s.NextAttempt = 0, 0
	if c.Done {
		s.end()
	} else {
		s.Delivered, s.LeaseUntil = true, t.now+s.LeaseTTL
	}
	return t.saveSubscription(s)
}

// moveCursor does not follow a stream that is gone: its name may have a successor, and
// a cursor that is written after the sweep of such cursors would stay for good.
func (t *txn) moveCursor(subscription uint64, a CursorAck) error {
	rec, err := t.stream(a.Stream)
	if err != nil || rec == nil || rec.Deleted {
		return err
	}
	l, err := loadLink(t.batch, subscription, a.Name)
	switch {
	case err != nil:
		return err
	case l == nil && !a.Matched:
		return nil // unlinked meanwhile
	case l == nil:
		l = &Link{Name: a.Name}
	case l.Stream == a.Stream && l.Position >= a.Position:
		return nil
	}
	l.Cursor = a.Cursor
	return t.set(keyLink(subscription, a.Name), l.encode())
}

func (t *txn) addSigningKey(c AddSigningKey) error {
	keys, err := loadSigningKeys(t.batch)
	if err != nil {
		return err
	}
	var active, last uint64
	for _, k := range keys {
		last = k.Number
		if k.RetiredAt == 0 {
			active = k.Number
		}
	}
	if active != c.Replaces {
		return ErrConflict
	}
	for _, k := range keys {
		if k.RetiredAt != 0 {
			continue
		}
		k.RetiredAt = t.now
		if err := t.set(keySigningKey(k.Number), k.encode()); err != nil {
			return err
		}
	}
	k := SigningKey{Number: last + 1, CreatedAt: t.now, Seed: c.Seed}
	return t.set(keySigningKey(k.Number), k.encode())
}

func (t *txn) dropSigningKeys(c DropSigningKeys) error {
	keys, err := loadSigningKeys(t.batch)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.RetiredAt != 0 && k.RetiredAt < c.RetiredBefore {
			if err := t.delete(keySigningKey(k.Number)); err != nil {
				return err
			}
		}
	}
	return nil
}
