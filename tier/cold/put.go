package cold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// PutSegment writes an object of segments under a new key and reads its descriptor
// back: the object must be there, have the right size and say of itself what was
// meant. It takes one PUT and one GET, and returns the object's size. After an error
// the object may exist: the key is to be abandoned.
func (s *Store) PutSegment(ctx context.Context, key string, sealed *segment.Sealed) (uint64, error) {
	size := int64(len(sealed.Bytes))
	if err := s.put(ctx, key, bytes.NewReader(sealed.Bytes)); err != nil {
		return 0, err
	}
	if s.opts.fault == FaultUnverified {
		return uint64(size), nil
	}
	tail, info, err := blob.ReadAll(ctx, s.blobs, key, -sealed.TailBytes(), -1)
	if err != nil {
		return 0, unavailable("verify segment", key, err)
	}
	if info.Size != size {
		return 0, fmt.Errorf("verify segment %s: %w: store has %d bytes of %d", key, stream.ErrColdUnavailable, info.Size, size)
	}
	d, err := segment.ParseTail(tail, size)
	if err != nil {
		return 0, fmt.Errorf("verify segment %s: %w: %w", key, stream.ErrColdUnavailable, err)
	}
	if !slices.EqualFunc(d.Refs(key), sealed.Refs, Same) {
		return 0, fmt.Errorf("verify segment %s: %w: store has other content", key, stream.ErrColdUnavailable)
	}
	return uint64(size), nil
}

// Same reports whether two references to one object have the same bytes at the same place.
func Same(a, b segment.Ref) bool {
	return a.Offset == b.Offset && a.Length == b.Length && a.Skip == b.Skip &&
		a.From == b.From && a.To == b.To && slices.Equal(a.Frames, b.Frames)
}

// snapshotTail is how much of a snapshot's end is read back.
const snapshotTail = 64 << 10

// PutSnapshot writes a blob of size bytes under a new key and reads its end back: the
// object must be there, have the right size and end as it should. It takes one PUT (more
// for a large blob) and one GET. After an error the object may exist: the key is to be
// abandoned.
func (s *Store) PutSnapshot(ctx context.Context, key string, r io.ReaderAt, size int64) error {
	if err := s.put(ctx, key, io.NewSectionReader(r, 0, size)); err != nil {
		return err
	}
	if s.opts.fault == FaultUnverified {
		return nil
	}
	want := make([]byte, min(size, snapshotTail))
	if _, err := r.ReadAt(want, size-int64(len(want))); err != nil && err != io.EOF {
		return fmt.Errorf("verify snapshot %s: %w", key, err)
	}
	at := -int64(len(want)) // from the end
	got, info, err := blob.ReadAll(ctx, s.blobs, key, at, -1)
	switch {
	case err != nil:
		return unavailable("verify snapshot", key, err)
	case info.Size != size || !bytes.Equal(got, want):
		return fmt.Errorf("verify snapshot %s: %w: store has other content, of %d bytes", key, stream.ErrColdUnavailable, info.Size)
	}
	return nil
}

// put writes an object under a key that nobody else has: a condition guards
// against the impossible where the store knows conditions.
func (s *Store) put(ctx context.Context, key string, body blob.Body) error {
	_, err := s.blobs.Put(ctx, key, body, blob.PutOptions{IfNoneMatch: true})
	if errors.Is(err, blob.ErrNotSupported) {
		_, err = s.blobs.Put(ctx, key, body, blob.PutOptions{})
	}
	if err != nil {
		return unavailable("put", key, err)
	}
	return nil
}

// Delete removes objects and returns those that the store has confirmed to be gone.
func (s *Store) Delete(ctx context.Context, keys []string) (gone []string, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	err = s.blobs.Delete(ctx, keys...)
	if err == nil || s.opts.fault == FaultDeleteUnconfirmed {
		return keys, nil
	}
	var failed *blob.DeleteError
	if !errors.As(err, &failed) {
		return nil, unavailable("delete", keys[0], err)
	}
	for _, k := range keys {
		if failed.Failed[k] == nil {
			gone = append(gone, k)
		}
	}
	return gone, fmt.Errorf("%w: %w", stream.ErrColdUnavailable, err)
}
