package verify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// attempts is how often an object is read when the store breaks off or gives bytes
// that are wrong: a bad transfer is not yet a bad object.
const attempts = 3

// look checks one object. The error is that of ctx.
func (r *run) look(ctx context.Context, n *object, size int64) error {
	defer r.tell(nil)
	if n.size != uint64(size) {
		r.problem(Problem{Code: CodeDamaged, Stream: n.owner(), Object: n.key,
			Text: fmt.Sprintf("the store has %d bytes of it, the catalog says %d", size, n.size)})
		return nil
	}
	var found []Problem
	var err error
	for range attempts {
		found, err = r.examine(ctx, n, size)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && len(found) == 0 {
			return nil
		}
	}
	switch {
	case errors.Is(err, blob.ErrNotFound) && r.gone(n.key):
	case errors.Is(err, blob.ErrNotFound):
		r.problem(Problem{Code: CodeMissing, Stream: n.owner(), Object: n.key, Text: "the store lists it but does not have it"})
	case errors.Is(err, blob.ErrCorrupt), errors.Is(err, blob.ErrRange), errors.Is(err, segment.ErrCorrupt), errors.Is(err, segment.ErrVersion):
		r.problem(Problem{Code: CodeDamaged, Stream: n.owner(), Object: n.key, Text: err.Error()})
	case err != nil:
		r.unchecked()
	}
	for _, p := range found {
		r.problem(p)
	}
	return nil
}

// examine reads an object once.
func (r *run) examine(ctx context.Context, n *object, size int64) ([]Problem, error) {
	if n.snapshot != nil {
		return r.examineSnapshot(ctx, n)
	}
	d, err := segment.ReadTail(readerAt{ctx, r, n.key, size}, size)
	if err != nil {
		return nil, err
	}
	found := r.identify(n, d)
	if r.Structure || len(found) > 0 {
		return found, nil
	}
	body, _, err := r.place(n.key).Get(ctx, n.key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return r.content(bufio.NewReaderSize(throttled{ctx, r, body}, maxTake), n, d)
}

// readerAt reads an object by ranges.
type readerAt struct {
	ctx  context.Context
	r    *run
	key  string
	size int64
}

// ReadAt reads exactly len(b) bytes.
func (a readerAt) ReadAt(b []byte, off int64) (int, error) {
	data, info, err := blob.ReadAll(a.ctx, a.r.place(a.key), a.key, off, int64(len(b)))
	if err == nil && info.Size != a.size {
		err = fmt.Errorf("%w: it has %d bytes, was listed with %d", blob.ErrCorrupt, info.Size, a.size)
	}
	a.r.tell(data)
	return copy(b, data), err
}

func (r *run) examineSnapshot(ctx context.Context, n *object) ([]Problem, error) {
	if n.snapshot.Size != n.size {
		return []Problem{{Code: CodeDiffers, Object: n.key, Text: fmt.Sprintf("the snapshot has %d bytes, the object %d", n.snapshot.Size, n.size)}}, nil
	}
	if r.Structure {
		return nil, nil
	}
	body, _, err := r.place(n.key).Get(ctx, n.key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.CopyBuffer(sum, throttled{ctx, r, body}, make([]byte, maxTake)); err != nil {
		return nil, err
	}
	if uint64(sum.Sum32()) != n.snapshot.CRC {
		return []Problem{{Code: CodeDamaged, Object: n.key, Text: "the snapshot's checksum is another"}}, nil
	}
	return nil, nil
}

// identify compares what an object says of itself with what the catalog has of it.
func (r *run) identify(n *object, d *segment.Descriptor) []Problem {
	var found []Problem
	differs := func(p part, format string, args ...any) {
		found = append(found, Problem{Code: CodeDiffers, Stream: p.id, Object: n.key, Text: fmt.Sprintf(format, args...)})
	}
	type start struct {
		id   stream.ID
		from uint64
	}
	entries := make(map[start]int, len(d.Entries)) // a pack has thousands
	for i, e := range d.Entries {
		entries[start{e.Incarnation, e.From}] = i
	}
	for _, p := range n.parts {
		i, ok := entries[start{p.id, p.ref.From}]
		if !ok {
			differs(p, "it says nothing of the stream's bytes from %d on", p.ref.From)
			continue
		}
		is := d.Ref(i, n.key)
		if is.Offset != p.ref.Offset || is.Length != p.ref.Length || is.Skip != p.ref.Skip || is.To != p.ref.To || !slices.Equal(is.Frames, p.ref.Frames) {
			differs(p, "it has the stream's bytes [%d,%d) elsewhere than the catalog says", p.ref.From, p.ref.To)
		}
		if d.Store != r.catalog.StoreID {
			differs(p, "it is of store %s", d.Store)
		}
		s := r.catalog.Streams[p.id]
		if s == nil {
			continue // waits to be let go of
		}
		if d.Name(i) != s.Name || d.Mode != s.Mode || d.Entries[i].ContentType != s.ContentType {
			differs(p, "it says that the stream is %q of type %q", d.Name(i), d.Entries[i].ContentType)
		}
	}
	return found
}
