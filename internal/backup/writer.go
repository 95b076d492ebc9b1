package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"firn/internal/blob"
	"firn/tier/hot"
)

// partBytes is how large the entries of an object grow before compression. An object
// is held in memory.
const partBytes = 8 << 20

// writer writes the objects of one copy.
type writer struct {
	ctx   context.Context
	blobs blob.Store
	enc   *zstd.Encoder

	head    header // of the next object
	entries []byte
	count   uint32

	parts int   // that were written
	bytes int64 // of these
}

// add takes an entry, and writes an object when there are enough.
func (w *writer) add(e hot.CopyEntry) error {
	if len(w.entries) > 0 && len(w.entries)+len(e.Key)+len(e.Value) > partBytes {
		if err := w.put(Part); err != nil {
			return err
		}
	}
	w.entries = appendEntry(w.entries, e)
	w.count++
	return nil
}

// put writes an object with the entries there are. The next one is to follow it.
func (w *writer) put(kind Kind) error {
	w.head.kind, w.head.entries = kind, w.count
	b, crc := w.head.encode(w.enc, w.entries)
	if err := put(w.ctx, w.blobs, w.head.key(w.head.store), b); err != nil {
		return err
	}
	w.head.prev = link{seq: w.head.seq, crc: crc}
	w.head.seq++
	w.entries, w.count = w.entries[:0], 0
	w.parts++
	w.bytes += int64(len(b))
	return nil
}

// put writes an object under a key that nobody else has.
func put(ctx context.Context, blobs blob.Store, key string, b []byte) error {
	_, err := blobs.Put(ctx, key, bytes.NewReader(b), blob.PutOptions{IfNoneMatch: true})
	if errors.Is(err, blob.ErrNotSupported) {
		_, err = blobs.Put(ctx, key, bytes.NewReader(b), blob.PutOptions{})
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", key, err)
	}
	return nil
}
