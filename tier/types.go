package tier

import (
	"io"
	"time"

	"firn/pkg/stream"
)

// Info is what a stream is at one moment.
type Info struct {
	Name        stream.Name
	ID          stream.ID
	ContentType string // as its creator spelt it
	Mode        stream.Mode
	Tail        stream.Offset
	Earliest    stream.Offset // below it reads are refused with a TrimmedError
	Closed      bool
	Lifetime    stream.Lifetime
	CreatedAt   time.Time
	LastWriteAt time.Time
	// Snapshot is the visible snapshot, nil when there is none (X§2.4).
	Snapshot *SnapshotInfo
}

// CreateRequest asks for a stream (B§5.1) or a fork (B§4.2).
type CreateRequest struct {
	Name stream.Name
	// ContentType may be empty: the default, or the fork source's.
	ContentType string
	Lifetime    stream.Lifetime
	Closed      bool
	// Body is the first content as received, or empty. In JSON mode it is
	// validated and flattened here, because only the source tells a fork's mode.
	Body []byte
	// Fork is nil for an ordinary stream.
	Fork *ForkRequest
}

// ForkRequest names where a fork leaves its source.
type ForkRequest struct {
	Source stream.Name
	// Offset is nil for the source's tail of the moment.
	Offset *stream.Offset
	// SubOffset counts messages (JSON) or bytes past Offset.
	SubOffset uint64
}

// AppendRequest asks for an append, a close, or both in one step (B§5.2, B§5.3).
type AppendRequest struct {
	Name stream.Name
	// ContentType is ignored when Body is empty.
	ContentType string
	// Body is the payload as received. It may be reused when Append returns.
	Body []byte
	// Seq is the Stream-Seq value, nil when the request had none.
	Seq *string
	// Producer is nil for an append without producer headers.
	Producer *stream.Producer
	Close    bool
}

// AppendResult is the outcome of an accepted or deduplicated append.
type AppendResult struct {
	// Tail is the stream's tail after the append; for a duplicate, of the moment.
	Tail   stream.Offset
	Closed bool
	// Duplicate: a producer's retry, nothing was written.
	Duplicate bool
	// Producer is the producer's state after the append: its epoch and the
	// highest sequence number accepted. Nil without producer headers.
	Producer *stream.ProducerState
}

// Page is a range of a stream's stored bytes.
type Page struct {
	From stream.Offset
	Next stream.Offset
	// Data are the stored bytes of [From, Next). In JSON mode they are whole
	// messages, each ended by LF. Valid until Release.
	Data []byte
	// UpToDate: Next was the tail when the page was made.
	UpToDate bool
	// Closed: UpToDate, and the stream is closed.
	Closed bool
	// Tier tells where the bytes came from: Cold as soon as one of them did.
	Tier Tier
	// Info is the stream at the moment of the page.
	Info Info

	room    []byte // one byte and then Data; nil when Data is shared with other pages
	release func()
}

// JSONArray returns the data of a page of a JSON stream as one JSON array (B§9.1.5).
// Unless it is shared, Data becomes the array, and must not be used afterwards. The
// array is valid until Release.
func (p *Page) JSONArray() []byte {
	if p.room == nil {
		return stream.AppendJSONArray(make([]byte, 0, len(p.Data)+2), p.Data)
	}
	stream.MakeJSONArray(p.room)
	return p.room
}

// Release gives the page's memory back. Data must not be used afterwards. It may
// be called more than once.
func (p *Page) Release() {
	if p.release != nil {
		p.release()
		p.release, p.Data, p.room = nil, nil, nil
	}
}

// Tier names a tier.
type Tier uint8

const (
	// None: no byte was read.
	None Tier = iota
	// Hot is the local store.
	Hot
	// Cold is the object store, or the cache in front of it.
	Cold
)

// String returns "none", "hot" or "cold".
func (t Tier) String() string {
	return [...]string{"none", "hot", "cold"}[t]
}

// BucketInfo is the metadata of a bucket (X§1.3).
type BucketInfo struct {
	Bucket string
	// Streams counts what a listing shows: no expired or soft-deleted streams.
	Streams uint64
}

// ListRequest selects streams of a bucket (X§1.4).
type ListRequest struct {
	Bucket string
	Prefix string
	// After is an exclusive cursor: a stream id, which need not exist.
	After string
	// Limit is from 1 to 1000.
	Limit int
}

// Listing is one page of a bucket's streams in byte order of their ids.
type Listing struct {
	Streams []Info
	// Total counts the streams of the bucket.
	Total uint64
	// More: there are matching streams after the last one.
	More bool
}

// SnapshotInfo describes a published snapshot (X§2).
type SnapshotInfo struct {
	Offset      stream.Offset
	ContentType string
	Size        int64
	// Tag is unique to this blob: a publication at the same offset gets another.
	Tag string
}

// Snapshot is an open snapshot blob.
type Snapshot struct {
	SnapshotInfo
	// UpToDate: the stream has no bytes beyond the snapshot.
	UpToDate bool
	// Closed: UpToDate, and the stream is closed.
	Closed bool
	// Body yields exactly Size bytes, or fails. The caller closes it.
	Body io.ReadCloser
}

// PublishRequest asks for a snapshot to be made visible (X§2.2).
type PublishRequest struct {
	Name        stream.Name
	Offset      stream.Offset
	ContentType string
	// Size is the declared length in bytes, -1 when unknown.
	Size int64
	// Body is read once, to its end. An error from it leaves nothing behind.
	Body io.Reader
}

// Bootstrap is a snapshot and the updates after it, taken under one view (X§3).
type Bootstrap struct {
	Info Info
	// Snapshot is open, or nil when the stream has none.
	Snapshot *Snapshot
	// Updates are the stored bytes from the snapshot (or the earliest retained
	// offset) to Next. In JSON mode they are whole messages.
	Updates []byte
	Next    stream.Offset
	// UpToDate: Next is the tail of the view. Absent: see Partial.
	UpToDate bool
	Closed   bool
	// Partial says why the answer stops early: "" (complete), "cold" or "size".
	Partial string

	release func()
}

// Close closes the snapshot and gives the memory of the updates back.
func (b *Bootstrap) Close() {
	if b.Snapshot != nil && b.Snapshot.Body != nil {
		b.Snapshot.Body.Close()
		b.Snapshot.Body = nil
	}
	if b.release != nil {
		b.release()
		b.release, b.Updates = nil, nil
	}
}
