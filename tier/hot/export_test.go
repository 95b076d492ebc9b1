package hot

import (
	"firn/pkg/stream"
)

// What the tests of the stored form need.

func (r *Record) Encode() []byte { return r.encode(nil) }

func DecodeRecord(id stream.ID, b []byte) (*Record, error) { return decodeRecord(id, b) }

func DecodeAny(b []byte) (errs []error) {
	_, err := decodeState(b)
	errs = append(errs, err)
	_, err = decodeBucket(b)
	errs = append(errs, err)
	_, err = decodeObject(b)
	errs = append(errs, err)
	_, err = decodeProducer(b)
	errs = append(errs, err)
	_, err = decodeSubscription("", "", b)
	errs = append(errs, err)
	_, err = decodeLink(stream.Name{}, b)
	errs = append(errs, err)
	_, err = decodeSigningKey(0, b)
	return append(errs, err)
}

var (
	KeyName     = keyName
	KeyData     = keyData
	KeySegment  = keySegment
	KeyFork     = keyFork
	KeyQueue    = keyQueue
	KeyHeld     = keyHeld
	KeyExpiry   = keyExpiry
	KeyUnsealed = keyUnsealed
	KeyAfter    = keyAfter
	KeyOf       = keyOf
)

// LimitChanges changes how many bytes of changes make a copy due.
func (s *Store) LimitChanges(n int) { s.changes.Load().limit = n }

const Never = never

// Uses is how many streams the store remembers the use of.
func (s *Store) Uses() int { return len(s.uses.last) }

// Looked is how many streams the next step of the expiry looks at because memory says
// that they may be over.
func (s *Store) Looked() int { return len(s.uses.idle(s.now(), expiryPage)) }

const ExpiryPage = expiryPage

// BlocksRead is how many blocks of tables have been looked at, cached or not.
func (s *Store) BlocksRead() int64 {
	c := s.db.Metrics().BlockCache
	return c.Hits + c.Misses
}
