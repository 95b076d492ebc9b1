package hot

import (
	"bytes"
	"encoding/binary"

	"firn/pkg/stream"
)

// Key layout. Every key begins with one byte for its kind; integers are
// big-endian, so that keys sort as their values. The table is docs/format.md's.
//
//	m name                        meta: format version, store id, counters
//	b bucket                      bucket record
//	n bucket 00 id                incarnation of a name
//	s incarnation                 stream record
//	p incarnation producer        producer state
//	d incarnation position        data value
//	g incarnation from            sealed segment
//	f source need fork            fork link; need is the lowest position wanted of the source
//	t incarnation                 has segments to let go of (trimmed, or the stream is gone)
//	o object                      object record
//	q due object                  when to look at an object: retired, or an intent
//	u since incarnation           has unsealed bytes since then (ms)
//	r incarnation                 ready to seal: enough unsealed bytes, or closed
//	h time incarnation from       segment whose hot copy may be given up, oldest first
//	j incarnation                 has a run of small segments to merge, unless they were trimmed since
//	v object                      object of which less than half is named
//	x deadline incarnation        when the stream expires (ms)
//	w scope 00 id                 subscription record
//	l subscription bucket 00 id   link of a subscription to a stream, with its cursor
//	k number                      signing key
//	c fence number                generation of the catalog's copies
//	e [object]                    how far the reading of all objects is; an object that is damaged
const (
	kindMeta     = 'm'
	kindBucket   = 'b'
	kindName     = 'n'
	kindStream   = 's'
	kindProducer = 'p'
	kindData     = 'd'
	kindSegment  = 'g'
	kindFork     = 'f'
	kindTrim     = 't'
	kindObject   = 'o'
	kindQueue    = 'q'
	kindUnsealed = 'u'
	kindReady    = 'r'
	kindHeld     = 'h'
	kindMerge    = 'j'
	kindSparse   = 'v'
	kindExpiry   = 'x'

	kindSubscription = 'w'
	kindLink         = 'l'
	kindSigningKey   = 'k'
	kindGeneration   = 'c'
	kindScrub        = 'e'
)

var (
	keyFormat  = []byte("mformat")
	keyStoreID = []byte("mstore")
	keyState   = []byte("mstate")
)

func keyBucket(bucket string) []byte { return append([]byte{kindBucket}, bucket...) }

// keyNamePrefix is the prefix of all names of a bucket. Bucket ids hold no NUL,
// and stream ids hold none either.
func keyNamePrefix(bucket string) []byte {
	k := make([]byte, 0, 64)
	k = append(k, kindName)
	k = append(k, bucket...)
	return append(k, 0)
}

func keyName(n stream.Name) []byte { return append(keyNamePrefix(n.Bucket), n.ID...) }

func keyOf(kind byte, id stream.ID) []byte {
	k := make([]byte, 9, 32)
	k[0] = kind
	binary.BigEndian.PutUint64(k[1:], uint64(id))
	return k
}

func keyStream(id stream.ID) []byte { return keyOf(kindStream, id) }

func keyProducer(id stream.ID, producer string) []byte {
	return append(keyOf(kindProducer, id), producer...)
}

func keyData(id stream.ID, pos uint64) []byte {
	return binary.BigEndian.AppendUint64(keyOf(kindData, id), pos)
}

func keySegment(id stream.ID, from uint64) []byte {
	return binary.BigEndian.AppendUint64(keyOf(kindSegment, id), from)
}

func keyFork(source stream.ID, need uint64, fork stream.ID) []byte {
	k := binary.BigEndian.AppendUint64(keyOf(kindFork, source), need)
	return binary.BigEndian.AppendUint64(k, uint64(fork))
}

func keyTrim(id stream.ID) []byte  { return keyOf(kindTrim, id) }
func keyReady(id stream.ID) []byte { return keyOf(kindReady, id) }
func keyMerge(id stream.ID) []byte { return keyOf(kindMerge, id) }

func keyObject(object string) []byte { return append([]byte{kindObject}, object...) }
func keySparse(object string) []byte { return append([]byte{kindSparse}, object...) }

func keyNumbered(kind byte, n uint64) []byte {
	k := make([]byte, 9, 48)
	k[0] = kind
	binary.BigEndian.PutUint64(k[1:], n)
	return k
}

func keyQueue(due uint64, object string) []byte {
	return append(keyNumbered(kindQueue, due), object...)
}

func keyUnsealed(since uint64, id stream.ID) []byte {
	return binary.BigEndian.AppendUint64(keyNumbered(kindUnsealed, since), uint64(id))
}

func keyExpiry(deadline uint64, id stream.ID) []byte {
	return binary.BigEndian.AppendUint64(keyNumbered(kindExpiry, deadline), uint64(id))
}

func keyHeld(ms uint64, id stream.ID, from uint64) []byte {
	k := binary.BigEndian.AppendUint64(keyNumbered(kindHeld, ms), uint64(id))
	return binary.BigEndian.AppendUint64(k, from)
}

// keySubscription: neither scopes nor the ids of subscriptions hold a NUL.
func keySubscription(scope, id string) []byte {
	k := append([]byte{kindSubscription}, scope...)
	k = append(k, 0)
	return append(k, id...)
}

func keyLinkPrefix(subscription uint64) []byte { return keyNumbered(kindLink, subscription) }

func keyLink(subscription uint64, n stream.Name) []byte {
	k := append(keyLinkPrefix(subscription), n.Bucket...)
	k = append(k, 0)
	return append(k, n.ID...)
}

func keySigningKey(number uint64) []byte { return keyNumbered(kindSigningKey, number) }

// keyAfter returns the first key after all keys with the prefix.
func keyAfter(prefix []byte) []byte {
	k := bytes.Clone(prefix)
	for i := len(k) - 1; i >= 0; i-- {
		k[i]++
		if k[i] != 0 {
			return k[:i+1]
		}
	}
	return nil
}

// field reads the 8-byte integer at offset off of a key.
func field(key []byte, off int) uint64 { return binary.BigEndian.Uint64(key[off:]) }
