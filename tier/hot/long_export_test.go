package hot

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// Lengthen gives an empty stream n cold segments of size bytes each, every one in an
// object of its own: what years of seals leave. Nobody else may use the store.
func (s *Store) Lengthen(id stream.ID, n int, size uint64) error {
	rec, err := loadRecord(s.db, id)
	if err != nil {
		return err
	}
	b := s.db.NewBatch()
	for i := range n {
		from := uint64(i) * size
		r := segment.Ref{
			Object: fmt.Sprintf("%s/bucket=%s/stream=%s/%s-%016d-%016d-%016x.bin.zst", s.id, rec.Name.Bucket, rec.Name.ID, id, from, from+size, i),
			From:   from, To: from + size,
		}
		for left := size; left > 0; {
			c := min(left, segment.DefaultFrameBytes)
			r.Frames = append(r.Frames, segment.Frame{Length: uint32(c/4 + 1), Content: uint32(c), CRC: uint32(i), TimeMs: s.now()})
			r.Length += c/4 + 1
			left -= c
		}
		ref, err := r.AppendBinary(nil)
		if err != nil {
			return err
		}
		if err := b.Set(keySegment(id, from), ref, nil); err != nil {
			return err
		}
		o := object{state: Live, live: size, size: r.Length, content: size}
		if err := b.Set(keyObject(r.Object), o.encode(), nil); err != nil {
			return err
		}
		if b.Len() > 8<<20 {
			if err := b.Commit(pebble.NoSync); err != nil {
				return err
			}
			b = s.db.NewBatch()
		}
	}
	at := uint64(n) * size
	rec.Cut, rec.Sealed, rec.Tail, rec.Segments = at, at, at, uint64(n)
	if err := b.Set(keyStream(id), rec.encode(nil), nil); err != nil {
		return err
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return err
	}
	s.table.publish([]change{{id: id, name: rec.Name, rec: rec}})
	return nil
}
