package hot

import (
	"encoding/binary"
	"fmt"

	"firn/pkg/stream"
)

const (
	// Version 1 had no Event; it is read.
	subscriptionVersion = 2
	linkVersion         = 1
	signingKeyVersion   = 1
)

// Subscription is what the catalog knows of one subscription (B§6): its
// configuration, which never changes, and where its wakes stand. Published records
// are immutable. Times are milliseconds since 1970.
type Subscription struct {
	// Scope is the bucket that paths are relative to, empty for "{bucket}/{id}"; ID is
	// unique within it.
	Scope, ID string
	// Number is unique for ever: a subscription that is deleted and made again has
	// another.
	Number uint64

	// Pull: wakes are events in WakeStream; otherwise they are sent to URL.
	Pull        bool
	URL         string
	WakeStream  stream.Name
	Pattern     string // empty for none
	LeaseTTL    uint64 // ms
	Description string
	// Root is the URL of the surface, as the creator addressed it.
	Root string
	// Hash is of the configuration as it was asked for (B§6.2).
	Hash      string
	CreatedAt uint64

	// Revision counts the changes of this record.
	Revision uint64
	// Generation counts the wakes. WakeID is that of the current one, empty when none
	// is in flight; see [Subscription.Woken].
	Generation uint64
	WakeID     string
	// Delivered: the receiver has confirmed the current wake.
	Delivered bool
	// Holder has claimed the current wake.
	Holder string
	// LeaseUntil ends the current wake, 0 while nobody has claimed a pull-wake.
	LeaseUntil uint64
	// Event is the incarnation of WakeStream that has the event of the current
	// pull-wake, 0 when a claim came before an event. Once that is gone, nobody can
	// learn of a wake that is not claimed, and another may begin.
	Event stream.ID
	// Failures counts the attempts that failed since the last success; no other is
	// made before NextAttempt.
	Failures    uint64
	NextAttempt uint64
}

// leaseSlack is how much longer than its TTL a lease may seem, in ms: the time of a
// command is that of its queueing, so one may see a lease given a little after it.
const leaseSlack = 60_000

// Leased reports whether a lease runs at now (ms). One that would run for longer than
// any does was given by a clock that was ahead and has been set back since: it is over,
// or nobody could be woken until that time.
func (s *Subscription) Leased(now uint64) bool {
	return s.LeaseUntil > now && s.LeaseUntil-now <= s.LeaseTTL+leaseSlack
}

// Woken reports whether a wake is in flight or a lease is held at now (ms).
func (s *Subscription) Woken(now uint64) bool {
	return s.WakeID != "" && (s.LeaseUntil == 0 || s.Leased(now))
}

// Link is the cursor of a subscription in one stream (B§6.1). A stream that only the
// pattern links, and that was made after the subscription, has none until its first
// ack: all that it has is pending.
type Link struct {
	Name     stream.Name
	Explicit bool
	Cursor
}

// Cursor is a position in one incarnation of a stream.
type Cursor struct {
	// Stream is 0 for one that did not exist.
	Stream   stream.ID
	Life     uint64
	Position uint64
}

// Offset is the cursor as clients see it.
func (c Cursor) Offset() stream.Offset { return stream.Offset{Life: c.Life, Position: c.Position} }

// CursorAt is the cursor at a position of a stream.
func CursorAt(r *Record, pos uint64) Cursor { return Cursor{Stream: r.ID, Life: r.Life, Position: pos} }

// SigningKey is a key that wakes and tokens are signed with.
type SigningKey struct {
	Number    uint64
	CreatedAt uint64 // ms
	// RetiredAt is when another took its place, 0 for the active one.
	RetiredAt uint64
	// Seed is the secret that everything is derived from.
	Seed []byte
}

func (s *Subscription) encode() []byte {
	b := []byte{subscriptionVersion}
	b = binary.AppendUvarint(b, s.Number)
	b = appendBool(b, s.Pull)
	for _, v := range [...]string{s.URL, s.WakeStream.Bucket, s.WakeStream.ID, s.Pattern} {
		b = appendString(b, v)
	}
	b = binary.AppendUvarint(b, s.LeaseTTL)
	for _, v := range [...]string{s.Description, s.Root, s.Hash} {
		b = appendString(b, v)
	}
	b = binary.AppendUvarint(b, s.CreatedAt)
	b = binary.AppendUvarint(b, s.Revision)
	b = binary.AppendUvarint(b, s.Generation)
	b = appendString(b, s.WakeID)
	b = appendBool(b, s.Delivered)
	b = appendString(b, s.Holder)
	for _, v := range [...]uint64{s.LeaseUntil, s.Failures, s.NextAttempt} {
		b = binary.AppendUvarint(b, v)
	}
	return binary.BigEndian.AppendUint64(b, uint64(s.Event))
}

func decodeSubscription(scope, id string, b []byte) (*Subscription, error) {
	d := decoder{b: b}
	version := d.versions(1, subscriptionVersion)
	s := &Subscription{
		Scope: scope, ID: id, Number: d.uint(), Pull: d.bool(), URL: d.string(),
		WakeStream: stream.Name{Bucket: d.string(), ID: d.string()}, Pattern: d.string(),
		LeaseTTL: d.uint(), Description: d.string(), Root: d.string(), Hash: d.string(),
		CreatedAt: d.uint(), Revision: d.uint(), Generation: d.uint(), WakeID: d.string(),
		Delivered: d.bool(), Holder: d.string(), LeaseUntil: d.uint(), Failures: d.uint(), NextAttempt: d.uint(),
	}
	if version > 1 {
		s.Event = stream.ID(d.uint64())
	}
	if err := d.finish(); err != nil {
		return nil, fmt.Errorf("decode subscription %q: %w", id, err)
	}
	return s, nil
}

func (l Link) encode() []byte {
	b := appendBool([]byte{linkVersion}, l.Explicit)
	b = binary.BigEndian.AppendUint64(b, uint64(l.Stream))
	b = binary.AppendUvarint(b, l.Life)
	return binary.AppendUvarint(b, l.Position)
}

func decodeLink(n stream.Name, b []byte) (Link, error) {
	d := decoder{b: b}
	d.version(linkVersion)
	l := Link{Name: n, Explicit: d.bool()}
	l.Cursor = Cursor{Stream: stream.ID(d.uint64()), Life: d.uint(), Position: d.uint()}
	if err := d.finish(); err != nil {
		return Link{}, fmt.Errorf("decode link to %s: %w", n, err)
	}
	return l, nil
}

func (k SigningKey) encode() []byte {
	b := binary.AppendUvarint([]byte{signingKeyVersion}, k.CreatedAt)
	b = binary.AppendUvarint(b, k.RetiredAt)
	return appendString(b, string(k.Seed))
}

func decodeSigningKey(number uint64, b []byte) (SigningKey, error) {
	d := decoder{b: b}
	d.version(signingKeyVersion)
	k := SigningKey{Number: number, CreatedAt: d.uint(), RetiredAt: d.uint(), Seed: []byte(d.string())}
	if err := d.finish(); err != nil {
		return SigningKey{}, fmt.Errorf("decode signing key %d: %w", number, err)
	}
	return k, nil
}
