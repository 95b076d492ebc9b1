package segment

import "fmt"

const (
	// MaxEntries bounds the ranges that a [Writer] puts into one object. Together with
	// maxEntryBytes it keeps the tail below [MaxTail], whatever the names are.
	MaxEntries = 1 << 14
	// maxEntryBytes bounds what they take in the descriptor.
	maxEntryBytes = 8 << 20
)

// pack lists the ranges of an object in the making.
type pack struct {
	d     Descriptor
	bytes int // what the entries take in the descriptor
}

func newPack(m Meta) pack {
	p := pack{d: Descriptor{Store: m.Store, Bucket: m.Name.Bucket, Mode: m.Mode}}
	p.add(m)
	return p
}

func (p *pack) add(m Meta) {
	p.bytes += entryBytes(m)
	p.d.Entries = append(p.d.Entries, Entry{
		Stream:      m.Name.ID,
		ContentType: m.ContentType,
		Incarnation: m.Incarnation,
		Life:        m.Life,
		CreatedMs:   m.CreatedMs,
		From:        m.From,
	})
}

func entryBytes(m Meta) int { return minEntry + len(m.Name.ID) + len(m.ContentType) }

func (p *pack) last() *Entry { return &p.d.Entries[len(p.d.Entries)-1] }

// begin ends the last entry at a position and adds one. Errors: [ErrMixed],
// [ErrFull]; they change nothing.
func (p *pack) begin(m Meta, to uint64) error {
	if m.Store != p.d.Store || m.Name.Bucket != p.d.Bucket || m.Mode != p.d.Mode {
		return fmt.Errorf("%w: %s after one of bucket %s", ErrMixed, m.Name, p.d.Bucket)
	}
	if len(p.d.Entries) == MaxEntries || p.bytes+entryBytes(m) > maxEntryBytes {
		return ErrFull
	}
	p.last().To = to
	p.add(m)
	return nil
}

// finish ends the last entry and places all of them in the frames.
func (p *pack) finish(to uint64, frames []Frame) *Descriptor {
	p.last().To = to
	p.d.Frames = frames
	var frame uint32
	var skip uint64
	for i := range p.d.Entries {
		e := &p.d.Entries[i]
		for int(frame) < len(frames) && skip >= uint64(frames[frame].Content) {
			skip -= uint64(frames[frame].Content)
			frame++
		}
		e.FirstFrame, e.Skip = frame, uint32(skip)
		skip += e.To - e.From
	}
	return &p.d
}
