package admin

import (
	"context"
	"net/http"

	"firn/pkg/stream"
	"firn/tier"
)

// Description is the body of GET /admin/streams/{bucket}/{stream}. Positions are
// bytes, times RFC 3339.
type Description struct {
	Bucket       string    `json:"bucket"`
	Stream       string    `json:"stream"`
	Incarnation  string    `json:"incarnation"`
	ContentType  string    `json:"content_type"`
	Mode         string    `json:"mode"`
	Closed       bool      `json:"closed"`
	TailOffset   string    `json:"tail_offset"`
	Earliest     uint64    `json:"earliest"`
	Marks        Marks     `json:"marks"`
	HotBytes     uint64    `json:"hot_bytes"`
	Unsealed     uint64    `json:"unsealed_bytes"`
	Producers    uint64    `json:"producers"`
	CreatedAt    string    `json:"created_at"`
	LastWriteAt  string    `json:"last_write_at"`
	SegmentCount uint64    `json:"segment_count"`
	Segments     []Segment `json:"segments"`
	Snapshot     *Snapshot `json:"snapshot"`
	ForkedFrom   *string   `json:"forked_from"`
	ForkCount    uint64    `json:"fork_count"`
	Forks        []string  `json:"forks"`
}

// Marks are where the bytes of a stream are, see docs/architecture.md.
type Marks struct {
	Base   uint64 `json:"base"`
	Floor  uint64 `json:"floor"`
	Cut    uint64 `json:"cut"`
	Sealed uint64 `json:"sealed"`
	Tail   uint64 `json:"tail"`
}

// Segment is a range of the stream in an object.
type Segment struct {
	Object string `json:"object"`
	From   uint64 `json:"from"`
	To     uint64 `json:"to"`
	Length uint64 `json:"compressed_bytes"`
	Frames int    `json:"frames"`
}

// Snapshot is the visible snapshot.
type Snapshot struct {
	Offset      string `json:"offset"`
	Object      string `json:"object"`
	ContentType string `json:"content_type"`
	Size        int64  `json:"size"`
}

func (s *Server) describe(w http.ResponseWriter, r *http.Request) {
	name, err := nameOf(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	d, err := s.opts.Store.Describe(r.Context(), name)
	if err != nil {
		s.fail(w, err)
		return
	}
	write(w, http.StatusOK, render(d))
}

func render(d tier.Description) Description {
	const rfc3339ms = "2006-01-02T15:04:05.000Z07:00"
	v := Description{
		Bucket: d.Info.Name.Bucket, Stream: d.Info.Name.ID, Incarnation: d.Info.ID.String(),
		ContentType: d.Info.ContentType, Mode: d.Info.Mode.String(), Closed: d.Info.Closed,
		TailOffset: d.Info.Tail.String(), Earliest: d.Info.Earliest.Position,
		Marks:    Marks{Base: d.Base, Floor: d.Floor, Cut: d.Cut, Sealed: d.Sealed, Tail: d.Tail},
		HotBytes: d.Tail - d.Cut, Unsealed: d.Tail - d.Sealed, Producers: d.Producers,
		CreatedAt: d.Info.CreatedAt.Format(rfc3339ms), LastWriteAt: d.Info.LastWriteAt.Format(rfc3339ms),
		SegmentCount: d.SegmentCount, Segments: []Segment{}, ForkCount: d.ForkCount, Forks: []string{},
	}
	for _, g := range d.Segments {
		v.Segments = append(v.Segments, Segment(g))
	}
	for _, f := range d.Forks {
		v.Forks = append(v.Forks, f.String())
	}
	if sn := d.Info.Snapshot; sn != nil {
		v.Snapshot = &Snapshot{Offset: sn.Offset.String(), Object: d.Object, ContentType: sn.ContentType, Size: sn.Size}
	}
	if d.Source != (stream.Name{}) {
		from := d.Source.String()
		v.ForkedFrom = &from
	}
	return v
}

// change runs a step of the compactor on one stream and answers when it is done,
// with what the stream is then.
func (s *Server) change(step func(context.Context, stream.ID) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		name, err := nameOf(r)
		if err != nil {
			s.fail(w, err)
			return
		}
		d, err := s.opts.Store.Describe(r.Context(), name)
		if err == nil {
			err = step(r.Context(), d.Info.ID)
		}
		if err == nil {
			d, err = s.opts.Store.Describe(r.Context(), name)
		}
		if err != nil {
			s.fail(w, err)
			return
		}
		write(w, http.StatusOK, render(d))
	}
}
