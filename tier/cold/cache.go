package cold

import "github.com/maypok86/otter/v2"

// frameKey names a frame: objects are immutable, so it never means other bytes.
type frameKey struct {
	object string
	offset uint64
}

// frameOverhead is about what an entry of the cache takes besides its content.
const frameOverhead = 256

// cache holds decoded frames, bounded in bytes.
type cache struct {
	frames *otter.Cache[frameKey, []byte]
}

func newCache(bytes int64) (*cache, error) {
	frames, err := otter.New(&otter.Options[frameKey, []byte]{
		MaximumWeight: uint64(bytes),
		Weigher: func(k frameKey, content []byte) uint32 {
			return uint32(cap(content) + len(k.object) + frameOverhead)
		},
	})
	return &cache{frames}, err
}

func (c *cache) get(k frameKey) ([]byte, bool) { return c.frames.GetIfPresent(k) }

// add keeps content, which nobody may change any more.
func (c *cache) add(k frameKey, content []byte) { c.frames.Set(k, content) }

func (c *cache) bytes() uint64 { return c.frames.WeightedSize() }
