package hot

import (
	"bytes"
	"fmt"

	"firn/pkg/stream"
)

// Bucket is the metadata of a bucket.
type Bucket struct {
	CreatedAt uint64 // ms
	// Listed counts the streams that a listing shows, Names the names in use.
	Listed, Names uint64
}

// Bucket returns a bucket's metadata. Errors: [stream.ErrBucketNotFound].
func (v *View) Bucket(name string) (Bucket, error) {
	raw, err := get(v.s.snap, keyBucket(name))
	if err != nil {
		return Bucket{}, fmt.Errorf("load bucket %s: %w", name, err)
	}
	if raw == nil {
		return Bucket{}, stream.ErrBucketNotFound
	}
	b, err := decodeBucket(raw)
	if err != nil {
		return Bucket{}, err
	}
	return Bucket{CreatedAt: b.created, Listed: b.listed, Names: b.names}, nil
}

// Buckets returns the names of all buckets, in byte order.
func (v *View) Buckets() ([]string, error) {
	var names []string
	err := v.scan([]byte{kindBucket}, nil, func(key, _ []byte) (bool, error) {
		names = append(names, string(key[1:]))
		return true, nil
	})
	return names, err
}

// Names calls fn for the streams of a bucket whose ids have the prefix and come
// after the cursor, in byte order, until fn returns false. Deleted streams that
// forks need are among them.
func (v *View) Names(bucket, prefix, after string, fn func(*Record) (bool, error)) error {
	base := keyNamePrefix(bucket)
	var from []byte
	if after != "" {
		from = append(append(bytes.Clone(base), after...), 0)
	}
	return v.scan(append(base, prefix...), from, func(_, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, errRecord
		}
		rec, err := v.Peek(stream.ID(field(value, 0)))
		if err != nil {
			return false, err
		}
		return fn(rec)
	})
}

// scan walks the keys with a prefix, from a key on if one is given, until fn
// returns false. Key and value are valid during the call.
func (v *View) scan(prefix, from []byte, fn func(key, value []byte) (bool, error)) error {
	lower := prefix
	if bytes.Compare(from, lower) > 0 {
		lower = from
	}
	return v.scanRange(lower, keyAfter(prefix), fn)
}

func (v *View) scanRange(lower, upper []byte, fn func(key, value []byte) (bool, error)) error {
	if bytes.Compare(lower, upper) >= 0 {
		return nil
	}
	it, err := v.s.snap.NewIter(iterOptions(lower, upper))
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return closeIter(it, err)
		}
		if more, err := fn(it.Key(), value); err != nil || !more {
			return closeIter(it, err)
		}
	}
	return closeIter(it, nil)
}

// due returns at most limit streams whose persisted deadline is at or before now.
func (v *View) due(now uint64, limit int) ([]stream.ID, error) {
	var ids []stream.ID
	err := v.scan([]byte{kindExpiry}, nil, func(key, _ []byte) (bool, error) {
		if field(key, 1) > now || len(ids) == limit {
			return false, nil
		}
		ids = append(ids, stream.ID(field(key, 9)))
		return true, nil
	})
	return ids, err
}

// Aged is a stream and the time (ms) by which an index orders it.
type Aged struct {
	ID stream.ID
	Ms uint64
}

// Unsealed returns at most limit streams with unsealed bytes, those with the
// oldest unsealed byte first, after one that an earlier page ended with.
func (v *View) Unsealed(after Aged, limit int) ([]Aged, error) {
	var list []Aged
	err := v.scan([]byte{kindUnsealed}, keyAfter(keyUnsealed(after.Ms, after.ID)), func(key, _ []byte) (bool, error) {
		list = append(list, Aged{ID: stream.ID(field(key, 9)), Ms: field(key, 1)})
		return len(list) < limit, nil
	})
	return list, err
}

// Small reports whether a stream's unsealed bytes are better sealed together with
// those of other streams: they are less than a quarter of the target.
func Small(unsealed, target uint64) bool { return unsealed < target/4 }

// Ready returns at most limit streams after one that have enough unsealed bytes to
// seal at once: the target, or all that is not small when no more can come.
func (v *View) Ready(after stream.ID, limit int) ([]stream.ID, error) {
	return v.ids(kindReady, after, limit)
}

// Trimmable returns at most limit incarnations that may have segments to let go of.
func (v *View) Trimmable(limit int) ([]stream.ID, error) { return v.ids(kindTrim, 0, limit) }

// Mergeable returns at most limit streams after one that may have segments to merge.
func (v *View) Mergeable(after stream.ID, limit int) ([]stream.ID, error) {
	return v.ids(kindMerge, after, limit)
}

func (v *View) ids(kind byte, after stream.ID, limit int) ([]stream.ID, error) {
	var list []stream.ID
	err := v.scan([]byte{kind}, keyAfter(keyOf(kind, after)), func(key, _ []byte) (bool, error) {
		list = append(list, stream.ID(field(key, 1)))
		return len(list) < limit, nil
	})
	return list, err
}

// Held is a segment whose hot copy is kept.
type Held struct {
	ID       stream.ID
	From, To uint64
	Ms       uint64 // append time of its last bytes
}

// Held returns at most limit segments whose hot copy is kept, oldest first, after one
// that an earlier page ended with.
func (v *View) Held(after Held, limit int) ([]Held, error) {
	var list []Held
	err := v.scan([]byte{kindHeld}, append(keyHeld(after.Ms, after.ID, after.From), 0), func(key, value []byte) (bool, error) {
		if len(value) != 8 {
			return false, errRecord
		}
		list = append(list, Held{
			ID: stream.ID(field(key, 9)), From: field(key, 17), To: field(value, 0), Ms: field(key, 1),
		})
		return len(list) < limit, nil
	})
	return list, err
}

// Due is an object that the sweep is to look at.
type Due struct {
	Object string
	State  ObjectState
}

// Due returns at most limit retired or intended objects whose time has come.
func (v *View) Due(now uint64, limit int) ([]Due, error) {
	var list []Due
	err := v.scan([]byte{kindQueue}, nil, func(key, _ []byte) (bool, error) {
		if field(key, 1) > now || len(list) == limit {
			return false, nil
		}
		list = append(list, Due{Object: string(key[9:])})
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		o, err := v.Object(list[i].Object)
		if err != nil {
			return nil, err
		}
		list[i].State = o
	}
	return list, nil
}

// Object returns the state of an object, 0 when the catalog does not know it.
func (v *View) Object(name string) (ObjectState, error) {
	raw, err := get(v.s.snap, keyObject(name))
	if err != nil || raw == nil {
		return 0, err
	}
	o, err := decodeObject(raw)
	return o.state, err
}

// fresh reports whether an object is intended and not due before a time in ms.
func (v *View) fresh(name string, before uint64) (bool, error) {
	raw, err := get(v.s.snap, keyObject(name))
	if err != nil || raw == nil {
		return false, err
	}
	o, err := decodeObject(raw)
	return o.state == Intended && o.due >= before, err
}

// HasObject reports whether a stream names an object whose key does not begin with
// a prefix.
func (v *View) HasObject(except string) (bool, error) {
	for _, r := range [][2][]byte{
		{{kindObject}, keyObject(except)},
		{keyAfter(keyObject(except)), keyAfter([]byte{kindObject})},
	} {
		found := false
		err := v.scanRange(r[0], r[1], func(_, value []byte) (bool, error) {
			o, err := decodeObject(value)
			found = o.state == Live
			return !found, err
		})
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// Peek is [View.Incarnation] for who looks at every stream once: it leaves the cache of
// records to those that are used.
func (v *View) Peek(id stream.ID) (*Record, error) {
	v.t.mu.Lock()
	if e := v.t.byID[id]; e != nil && e.since <= v.s.seq {
		rec := e.rec
		v.t.mu.Unlock()
		return rec, nil
	}
	v.t.mu.Unlock()
	return loadRecord(v.s.snap, id)
}

// Forks returns at most limit direct forks of an incarnation.
func (v *View) Forks(id stream.ID, limit int) ([]stream.ID, error) {
	var list []stream.ID
	err := v.scan(keyOf(kindFork, id), nil, func(key, _ []byte) (bool, error) {
		list = append(list, stream.ID(field(key, 17)))
		return len(list) < limit, nil
	})
	return list, err
}
