package tier

import (
	"context"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// Description is what an operator may know of a stream. Positions are bytes.
type Description struct {
	Info Info
	// Marks are where the stream's own bytes are: [floor, sealed) in segments,
	// [cut, tail) in the hot tier. Below base a fork's bytes are its source's.
	Base, Floor, Cut, Sealed, Tail uint64
	// Need is the lowest position that the stream or a fork of it may read.
	Need uint64
	// Segments are at most the first thousand, oldest first; SegmentCount counts all.
	Segments     []Segment
	SegmentCount uint64
	// Object is the key of the visible snapshot's blob, or "".
	Object string
	// Source is where a fork's inherited bytes come from; zero for none.
	Source stream.Name
	// Forks are at most the first thousand incarnations forked from this one;
	// ForkCount counts all.
	Forks     []stream.ID
	ForkCount uint64
	Producers uint64
}

// Segment is a range of a stream in an object.
type Segment struct {
	Object   string
	From, To uint64
	// Length is the compressed size, Frames how many pieces it is in.
	Length uint64
	Frames int
}

// describeLimit bounds the lists of a description.
const describeLimit = 1000

// Describe returns what the catalog has of a stream. It does not renew a TTL.
// Errors: as for Head.
func (s *Store) Describe(ctx context.Context, name stream.Name) (Description, error) {
	v := s.hot.View()
	defer v.Close()
	rec, err := s.visible(ctx, v, name)
	if err != nil {
		return Description{}, err
	}
	d := Description{
		Info: info(rec), Base: rec.Base, Floor: rec.Floor, Cut: rec.Cut, Sealed: rec.Sealed, Tail: rec.Tail,
		Need: rec.Need, SegmentCount: rec.Segments, ForkCount: rec.Forks, Producers: rec.Producers,
	}
	if rec.Snapshot != nil {
		d.Object = rec.Snapshot.Object
	}
	if rec.Fork != nil {
		d.Source = rec.Fork.From
	}
	if d.Segments, err = describeSegments(v, rec); err != nil {
		return Description{}, err
	}
	d.Forks, err = v.Forks(rec.ID, describeLimit)
	return d, err
}

func describeSegments(v *hot.View, rec *hot.Record) ([]Segment, error) {
	refs, err := v.Segments(rec.ID, 0, rec.Sealed, describeLimit)
	if err != nil {
		return nil, err
	}
	list := make([]Segment, 0, len(refs))
	for _, r := range refs {
		list = append(list, Segment{Object: r.Object, From: r.From, To: r.To, Length: r.Length, Frames: len(r.Frames)})
	}
	return list, nil
}

// Full reports why appends are refused, "" when they are not.
func (s *Store) Full() string { return s.hot.Full() }
