package segment

import (
	"errors"
	"fmt"

	"firn/pkg/stream"
)

// MaxStore bounds a store id, in bytes.
const MaxStore = 255

// Descriptor says what an object holds: everything that a catalog needs to take
// the object in again.
type Descriptor struct {
	// Store is the id of the store that wrote the object.
	Store string
	// Bucket and Mode are those of every entry.
	Bucket string
	Mode   stream.Mode
	// Entries are the ranges in the order of their bytes. Together they are the
	// whole content: each begins where the one before it ended.
	Entries []Entry
	// Frames are all frames of the object, from its first byte on.
	Frames []Frame
}

// Entry is a range of one stream.
type Entry struct {
	// Stream is the id of the stream, local to the bucket.
	Stream      string
	ContentType string
	Incarnation stream.ID
	// Life is that of the stream's offsets; a fork has its source's.
	Life uint64
	// CreatedMs is when the stream was created, in milliseconds since 1970.
	CreatedMs uint64
	// From and To are positions in the stream, From < To.
	From, To uint64
	// FirstFrame is the index of the frame that holds From.
	FirstFrame uint32
	// Skip is how many bytes of that frame's content precede From.
	Skip uint32
}

// Name is the address of the entry's stream.
func (d *Descriptor) Name(entry int) stream.Name {
	return stream.Name{Bucket: d.Bucket, ID: d.Entries[entry].Stream}
}

// Ref returns what a catalog keeps of an entry; object is the key of the object.
func (d *Descriptor) Ref(entry int, object string) Ref {
	offset := uint64(0)
	for _, f := range d.Frames[:d.Entries[entry].FirstFrame] {
		offset += uint64(f.Length)
	}
	return d.ref(entry, object, offset)
}

// Refs returns what [Descriptor.Ref] does for all entries.
func (d *Descriptor) Refs(object string) []Ref {
	refs := make([]Ref, len(d.Entries))
	frame, offset := uint32(0), uint64(0)
	for i, e := range d.Entries {
		for ; frame < e.FirstFrame; frame++ {
			offset += uint64(d.Frames[frame].Length)
		}
		refs[i] = d.ref(i, object, offset)
	}
	return refs
}

func (d *Descriptor) ref(entry int, object string, offset uint64) Ref {
	e := d.Entries[entry]
	r := Ref{Object: object, Offset: offset, Skip: uint64(e.Skip), From: e.From, To: e.To}
	end := int(e.FirstFrame)
	for content := uint64(0); content < r.Skip+r.To-r.From; end++ {
		content += uint64(d.Frames[end].Content)
		r.Length += uint64(d.Frames[end].Length)
	}
	r.Frames = d.Frames[e.FirstFrame:end:end]
	return r
}

// check holds what every Descriptor obeys. The writer refuses what the reader
// would, because both ask here.
func (d *Descriptor) check() error {
	if err := checkStore(d.Store); err != nil {
		return err
	}
	if err := stream.CheckBucket(d.Bucket); err != nil {
		return fmt.Errorf("bucket %q: %w", d.Bucket, err)
	}
	if d.Mode != stream.Bytes && d.Mode != stream.JSON {
		return fmt.Errorf("unknown content mode %d", uint8(d.Mode))
	}
	if len(d.Entries) == 0 {
		return errors.New("no entries")
	}
	for i := range d.Entries {
		if err := d.Entries[i].checkIdentity(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	_, content, err := checkFrames(d.Frames)
	if err != nil {
		return err
	}
	return d.checkTiling(content)
}

// checkTiling walks the entries over the frames: they leave no byte out, share
// none, and are where they say.
func (d *Descriptor) checkTiling(content uint64) error {
	var frame, skip uint64
	for i, e := range d.Entries {
		size := e.To - e.From
		switch {
		case e.From >= e.To:
			return fmt.Errorf("entry %d: range [%d,%d) is empty", i, e.From, e.To)
		case frame == uint64(len(d.Frames)) || size > content:
			return fmt.Errorf("entry %d: range [%d,%d) exceeds the content", i, e.From, e.To)
		case uint64(e.FirstFrame) != frame || uint64(e.Skip) != skip:
			return fmt.Errorf("entry %d: begins at frame %d+%d, not at %d+%d", i, e.FirstFrame, e.Skip, frame, skip)
		}
		skip += size
		for frame < uint64(len(d.Frames)) && skip >= uint64(d.Frames[frame].Content) {
			skip -= uint64(d.Frames[frame].Content)
			frame++
		}
	}
	if frame != uint64(len(d.Frames)) || skip != 0 {
		return fmt.Errorf("entries end at frame %d+%d, not with the last of %d frames", frame, skip, len(d.Frames))
	}
	return nil
}

func (e *Entry) checkIdentity() error {
	if e.Stream == "" || len(e.Stream) > stream.MaxPath {
		return fmt.Errorf("stream id has %d bytes, want 1 to %d", len(e.Stream), stream.MaxPath)
	}
	if err := stream.CheckContentType(e.ContentType); err != nil {
		return fmt.Errorf("content type %q: %w", e.ContentType, err)
	}
	return nil
}

func checkStore(s string) error {
	if s == "" || len(s) > MaxStore {
		return fmt.Errorf("store id has %d bytes, want 1 to %d", len(s), MaxStore)
	}
	return nil
}
