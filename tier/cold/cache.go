package cold

import (
	"container/list"
	"sync"
)

// frameKey names a frame: objects are immutable, so it never means other bytes.
type frameKey struct {
	object string
	offset uint64
}

// frameOverhead is about what an entry of the cache takes besides its content and
// its object's key.
const frameOverhead = 256

// cache holds decoded frames, bounded in bytes; those that were not asked for the
// longest make room. It never turns a frame away for being new: what was fetched
// ahead, or for a reader that has left, would be fetched again, for ever where the
// store is slower than its readers are patient.
type cache struct {
	bound int64
	fault Fault

	mu     sync.Mutex // guards what follows
	size   int64
	frames map[frameKey]*list.Element
	recent *list.List // of *entry, what was asked for last in front
}

type entry struct {
	key     frameKey
	content []byte
}

func (e *entry) size() int64 { return int64(cap(e.content) + len(e.key.object) + frameOverhead) }

func newCache(bytes int64, f Fault) *cache {
	return &cache{bound: bytes, fault: f, frames: make(map[frameKey]*list.Element), recent: list.New()}
}

func (c *cache) get(k frameKey) ([]byte, bool) {
	k = c.key(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.frames[k]
	if !ok {
		return nil, false
	}
	c.recent.MoveToFront(e)
	return e.Value.(*entry).content, true
}

// add keeps content, which nobody may change any more. What is larger than the
// whole cache is not kept.
func (c *cache) add(k frameKey, content []byte) {
	k = c.key(k)
	e := &entry{k, content}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frames[k] != nil || e.size() > c.bound {
		return
	}
	c.size += e.size()
	for c.size > c.bound {
		last := c.recent.Remove(c.recent.Back()).(*entry)
		delete(c.frames, last.key)
		c.size -= last.size()
	}
	c.frames[k] = c.recent.PushFront(e)
}

// key is where a frame is kept; apart only when a fault is planted.
func (c *cache) key(k frameKey) frameKey {
	if c.fault == FaultCacheByOffset {
		k.object = ""
	}
	return k
}

// bytes is what the frames take.
func (c *cache) bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}
