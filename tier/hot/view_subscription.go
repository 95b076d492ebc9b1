package hot

import (
	"bytes"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/stream"
)

// Subscription returns a subscription's record. Errors: [ErrNoSubscription].
func (v *View) Subscription(scope, id string) (*Subscription, error) {
	s, err := loadSubscription(v.s.snap, scope, id)
	if err == nil && s == nil {
		err = ErrNoSubscription
	}
	return s, err
}

// Subscriptions calls fn for every subscription.
func (v *View) Subscriptions(fn func(*Subscription) error) error {
	return v.scan([]byte{kindSubscription}, nil, func(key, value []byte) (bool, error) {
		scope, id, _ := bytes.Cut(key[1:], []byte{0})
		s, err := decodeSubscription(string(scope), string(id), value)
		if err != nil {
			return false, err
		}
		return true, fn(s)
	})
}

// Link returns the link of a subscription to a stream, nil when it has no record.
func (v *View) Link(subscription uint64, n stream.Name) (*Link, error) {
	return loadLink(v.s.snap, subscription, n)
}

// Links calls fn for the links of a subscription that have a record, from a name on
// if one is given, in the order of buckets and ids, until fn returns false.
func (v *View) Links(subscription uint64, from stream.Name, fn func(Link) (bool, error)) error {
	prefix := keyLinkPrefix(subscription)
	return v.scan(prefix, keyLink(subscription, from), func(key, value []byte) (bool, error) {
		bucket, id, _ := bytes.Cut(key[len(prefix):], []byte{0})
		l, err := decodeLink(stream.Name{Bucket: string(bucket), ID: string(id)}, value)
		if err != nil {
			return false, err
		}
		return fn(l)
	})
}

// AllNames calls fn for the names in use, from one on if it is given, in the order of
// buckets and ids, until fn returns false. It loads no record.
func (v *View) AllNames(from stream.Name, fn func(stream.Name, stream.ID) (bool, error)) error {
	return v.scan([]byte{kindName}, keyName(from), func(key, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, errRecord
		}
		bucket, id, _ := bytes.Cut(key[1:], []byte{0})
		return fn(stream.Name{Bucket: string(bucket), ID: string(id)}, stream.ID(field(value, 0)))
	})
}

// SigningKeys returns all keys, oldest first.
func (v *View) SigningKeys() ([]SigningKey, error) { return loadSigningKeys(v.s.snap) }

// loadSubscription returns nil when there is none.
func loadSubscription(r pebble.Reader, scope, id string) (*Subscription, error) {
	v, err := get(r, keySubscription(scope, id))
	if err != nil {
		return nil, fmt.Errorf("load subscription %q: %w", id, err)
	}
	if v == nil {
		return nil, nil
	}
	return decodeSubscription(scope, id, v)
}

// loadLink returns nil when there is none.
func loadLink(r pebble.Reader, subscription uint64, n stream.Name) (*Link, error) {
	v, err := get(r, keyLink(subscription, n))
	if err != nil {
		return nil, fmt.Errorf("load link to %s: %w", n, err)
	}
	if v == nil {
		return nil, nil
	}
	l, err := decodeLink(n, v)
	return &l, err
}

func loadSigningKeys(r pebble.Reader) ([]SigningKey, error) {
	prefix := []byte{kindSigningKey}
	it, err := r.NewIter(iterOptions(prefix, keyAfter(prefix)))
	if err != nil {
		return nil, err
	}
	var keys []SigningKey
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return nil, closeIter(it, err)
		}
		k, err := decodeSigningKey(field(it.Key(), 1), v)
		if err != nil {
			return nil, closeIter(it, err)
		}
		keys = append(keys, k)
	}
	return keys, closeIter(it, nil)
}
