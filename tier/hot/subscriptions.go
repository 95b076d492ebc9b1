package hot

import (
	"context"
	"errors"

	"firn/pkg/stream"
)

// Errors of the commands below.
var (
	// ErrNoSubscription: there is none of that name, or it is not the one that was meant.
	ErrNoSubscription = errors.New("subscription does not exist")
	// ErrFenced: the wake is not the current one, or its lease is over (B§7.3).
	ErrFenced = errors.New("wake is not the current one")
	// ErrHeld: another worker has claimed the wake (B§7.2).
	ErrHeld = errors.New("wake is held by another worker")
)

// The commands of subscriptions. What is pending is not among what they change: it
// follows from cursors and tails, so that an append has nothing to write.
type (
	// PutSubscription makes a subscription, links included, or finds the one that has
	// the id: see [PutResult]. Number, CreatedAt, Revision and the state of wakes are
	// chosen here.
	PutSubscription struct {
		Subscription Subscription
		Links        []Link
	}

	// DropSubscription removes a subscription with its links. Nothing happens when
	// there is none.
	DropSubscription struct{ Scope, ID string }

	// AddLinks links streams explicitly. One that has a link keeps its cursor.
	// Errors: [ErrNoSubscription].
	AddLinks struct {
		Of    SubscriptionRef
		Links []Link
	}

	// DropLink takes an explicit link away; with Keep, the pattern goes on linking the
	// stream, with the cursor if that is in a stream that exists. Errors: [ErrNoSubscription].
	DropLink struct {
		Of   SubscriptionRef
		Name stream.Name
		Keep bool
	}

	// SweepLinks forgets the cursors in incarnations that are gone, of streams that
	// only the pattern links. Errors: [ErrNoSubscription].
	SweepLinks struct {
		Of    SubscriptionRef
		Names []stream.Name
	}

	// Wake begins the next wake of a subscription that has none in flight, or whose
	// last one nobody has got or can get: a webhook that was never delivered, a pull-wake
	// whose stream is gone. Of a pull-wake it appends Event to the stream in the same
	// commit. Errors: [ErrNoSubscription]; [ErrConflict] unless Generation is the
	// current one and a wake may begin; those of Append for the event.
	Wake struct {
		Of         SubscriptionRef
		Generation uint64
		WakeID     string
		Stream     stream.ID
		Event      []byte
	}

	// Attempted records what became of an attempt to wake somebody: with NextAttempt it
	// has failed, and the wake is over. A failure takes the wake from nobody who has it:
	// a worker that claimed meanwhile, a receiver that has called back. Errors:
	// [ErrNoSubscription], [ErrFenced].
	Attempted struct {
		Of          SubscriptionRef
		Generation  uint64
		WakeID      string
		NextAttempt uint64 // ms
	}

	// Claim gives the wake in flight to a worker; when there is none, a new one with
	// WakeID. Errors: [ErrNoSubscription], [ErrHeld].
	Claim struct {
		Of     SubscriptionRef
		WakeID string
		Worker string
	}

	// Ack moves cursors forward and extends the lease, or gives it back. Acks of
	// incarnations that are gone are passed over. Errors:
	// [ErrNoSubscription], [ErrFenced].
	Ack struct {
		Of         SubscriptionRef
		Generation uint64
		WakeID     string
		Done       bool
		Acks       []CursorAck
	}

	// AddSigningKey makes a key the active one; the one before is retired. Errors:
	// [ErrConflict] unless that is Replaces, 0 for none.
	AddSigningKey struct {
		Replaces uint64
		Seed     []byte
	}

	// DropSigningKeys forgets the keys that were retired before a time (ms).
	DropSigningKeys struct{ RetiredBefore uint64 }
)

// SubscriptionRef names one subscription and no successor of its name.
type SubscriptionRef struct {
	Scope, ID string
	Number    uint64
}

// Ref names the subscription.
func (s *Subscription) Ref() SubscriptionRef {
	return SubscriptionRef{Scope: s.Scope, ID: s.ID, Number: s.Number}
}

// CursorAck moves one cursor. If it has no record, one is made for a stream that the
// pattern links.
type CursorAck struct {
	Name stream.Name
	Cursor
	Matched bool // by the pattern
}

// PutResult is the outcome of PutSubscription.
type PutResult struct {
	Subscription *Subscription
	// Created is false when the id was taken: compare the hash.
	Created bool
}

// PutSubscription makes or finds a subscription.
func (s *Store) PutSubscription(ctx context.Context, c PutSubscription) (PutResult, error) {
	r, err := s.propose(ctx, c)
	if err != nil {
		return PutResult{}, err
	}
	return r.(PutResult), nil
}

// DropSubscription removes a subscription.
func (s *Store) DropSubscription(ctx context.Context, scope, id string) error {
	_, err := s.propose(ctx, DropSubscription{Scope: scope, ID: id})
	return err
}

// AddLinks links streams explicitly.
func (s *Store) AddLinks(ctx context.Context, c AddLinks) error {
	_, err := s.propose(ctx, c)
	return err
}

// DropLink takes an explicit link away.
func (s *Store) DropLink(ctx context.Context, c DropLink) error {
	_, err := s.propose(ctx, c)
	return err
}

// SweepLinks forgets cursors that lead nowhere.
func (s *Store) SweepLinks(ctx context.Context, c SweepLinks) error {
	_, err := s.propose(ctx, c)
	return err
}

// Wake begins a wake. Also [stream.ErrHotFull], for its event.
func (s *Store) Wake(ctx context.Context, c Wake) (*Subscription, error) {
	if err := s.room(len(c.Event)); err != nil {
		return nil, err
	}
	return s.proposeSubscription(ctx, c)
}

// Attempted records what became of an attempt.
func (s *Store) Attempted(ctx context.Context, c Attempted) (*Subscription, error) {
	return s.proposeSubscription(ctx, c)
}

// Claim gives a wake to a worker. With [ErrHeld] the record says to whom it belongs.
func (s *Store) Claim(ctx context.Context, c Claim) (*Subscription, error) {
	return s.proposeSubscription(ctx, c)
}

// Ack moves cursors.
func (s *Store) Ack(ctx context.Context, c Ack) (*Subscription, error) {
	return s.proposeSubscription(ctx, c)
}

func (s *Store) proposeSubscription(ctx context.Context, command any) (*Subscription, error) {
	r, err := s.propose(ctx, command)
	sub, _ := r.(*Subscription)
	return sub, err
}

// AddSigningKey makes a key the active one.
func (s *Store) AddSigningKey(ctx context.Context, c AddSigningKey) error {
	_, err := s.propose(ctx, c)
	return err
}

// DropSigningKeys forgets keys.
func (s *Store) DropSigningKeys(ctx context.Context, retiredBefore uint64) error {
	_, err := s.propose(ctx, DropSigningKeys{RetiredBefore: retiredBefore})
	return err
}
