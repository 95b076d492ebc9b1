package tier

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"firn/pkg/stream"
	"firn/tier/cold"
	"firn/tier/hot"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// PublishSnapshot stores a blob and makes it the stream's visible snapshot; from
// then on its offset is the earliest one (X§2.2). The blob is in the object store
// before the one commit that shows it. Errors, in this order: as for Head; offset
// errors; a [*stream.TrimmedError]; [stream.ErrSnapshotPastTail];
// [stream.ErrOffsetNotBoundary]; [stream.ErrSnapshotTooLarge]; then those of the
// body, and [stream.ErrColdUnavailable].
func (s *Store) PublishSnapshot(ctx context.Context, r PublishRequest) error {
	rec, err := s.find(ctx, r.Name)
	if err != nil {
		return err
	}
	pos, err := s.publishable(ctx, rec, r.Offset)
	if err != nil {
		return err
	}
	if r.Size > s.opts.SnapshotBytes {
		return stream.ErrSnapshotTooLarge
	}
	file, size, crc, err := s.spool(r.Body)
	if err != nil {
		return err
	}
	defer file.Close()

	key := s.opts.Cold.SnapshotKey(rec.Name, rec.ID, pos)
	if err := s.hot.Intend(ctx, key); err != nil {
		return fmt.Errorf("intend snapshot: %w", err)
	}
	put := func() error { return s.opts.Cold.PutSnapshot(ctx, key, file, size) }
	show := func() error {
		return s.hot.Publish(ctx, hot.Publish{ID: rec.ID, Snapshot: hot.Snapshot{
			Position: pos, Object: key, Size: size, ContentType: r.ContentType, CRC: crc,
		}})
	}
	if s.opts.fault == FaultPublishFirst {
		put, show = show, put
	}
	if err = put(); err == nil {
		err = show()
	}
	if err != nil {
		// What was written is not named: let the sweep have it. A command of unknown
		// outcome is safe: a snapshot that was published is not intended any more.
		if aerr := s.hot.Abandon(context.WithoutCancel(ctx), key); aerr != nil {
			s.log.Warn("cannot abandon snapshot", "key", key, "err", aerr)
		}
		if errors.Is(err, hot.ErrConflict) {
			return stream.ErrUnavailable
		}
		return err
	}
	s.hot.Renew(rec)
	return nil
}

// publishable resolves the offset of a publication against the stream.
func (s *Store) publishable(ctx context.Context, rec *hot.Record, o stream.Offset) (uint64, error) {
	pos, err := rec.Lives().Resolve(o, rec.Tail)
	switch {
	case errors.Is(err, stream.ErrOffsetPastTail):
		return 0, stream.ErrSnapshotPastTail
	case err != nil:
		return 0, err
	case pos < rec.Earliest:
		return 0, &stream.TrimmedError{Earliest: rec.Offset(rec.Earliest)}
	}
	return pos, s.boundary(ctx, rec.ID, pos)
}

// spool receives a blob into a file that is gone when it is closed.
func (s *Store) spool(body io.Reader) (file *os.File, size int64, crc uint32, err error) {
	file, err = os.CreateTemp(s.opts.SpoolDir, "snapshot-*")
	if err != nil {
		return nil, 0, 0, fmt.Errorf("spool snapshot: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, 0, 0, fmt.Errorf("spool snapshot: %w", err)
	}
	sum := crc32.New(castagnoli)
	size, err = io.Copy(io.MultiWriter(file, sum), io.LimitReader(body, s.opts.SnapshotBytes+1))
	if err == nil && size > s.opts.SnapshotBytes {
		err = stream.ErrSnapshotTooLarge
	}
	if err != nil {
		file.Close()
		return nil, 0, 0, err
	}
	return file, size, sum.Sum32(), nil
}

// LatestSnapshot returns the visible snapshot (X§2.3). Errors: as for Head;
// [stream.ErrSnapshotNotFound].
func (s *Store) LatestSnapshot(ctx context.Context, name stream.Name) (SnapshotInfo, error) {
	rec, err := s.find(ctx, name)
	if err != nil {
		return SnapshotInfo{}, err
	}
	if rec.Snapshot == nil {
		return SnapshotInfo{}, stream.ErrSnapshotNotFound
	}
	return snapshotInfo(rec), nil
}

// OpenSnapshot opens the snapshot at an offset (X§2.5). Errors: as for
// LatestSnapshot; [stream.ErrColdUnavailable].
func (s *Store) OpenSnapshot(ctx context.Context, name stream.Name, at stream.Offset) (*Snapshot, error) {
	rec, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	if !shows(rec, at) {
		return nil, stream.ErrSnapshotNotFound
	}
	return s.openSnapshot(ctx, rec)
}

// DeleteSnapshot refuses to delete the visible snapshot; others are gone already
// (X§2.6). Errors: as for Head; [stream.ErrSnapshotLatest];
// [stream.ErrSnapshotNotFound].
func (s *Store) DeleteSnapshot(ctx context.Context, name stream.Name, at stream.Offset) error {
	rec, err := s.find(ctx, name)
	if err != nil {
		return err
	}
	if shows(rec, at) {
		return stream.ErrSnapshotLatest
	}
	return stream.ErrSnapshotNotFound
}

// shows reports whether a stream's visible snapshot is at an offset.
func shows(rec *hot.Record, at stream.Offset) bool {
	if rec.Snapshot == nil {
		return false
	}
	pos, err := rec.Lives().Resolve(at, rec.Tail)
	return err == nil && pos == rec.Snapshot.Position
}

func (s *Store) openSnapshot(ctx context.Context, rec *hot.Record) (*Snapshot, error) {
	sn := rec.Snapshot
	body, err := s.cold(sn.Object).OpenSnapshot(ctx, sn.Object, sn.Size, sn.CRC)
	if err != nil {
		return nil, err
	}
	upToDate := sn.Position == rec.Tail
	return &Snapshot{SnapshotInfo: snapshotInfo(rec), UpToDate: upToDate, Closed: upToDate && rec.Closed, Body: body}, nil
}

func snapshotInfo(rec *hot.Record) SnapshotInfo {
	sn := rec.Snapshot
	return SnapshotInfo{
		Offset: rec.Offset(sn.Position), ContentType: sn.ContentType, Size: sn.Size,
		Tag: fmt.Sprintf("%s-%016d-%08x-%d", rec.ID, sn.Position, sn.CRC, sn.Size),
	}
}

// cold returns the store that holds an object: keys that were made without an
// object store say so.
func (s *Store) cold(object string) *cold.Store {
	if s.opts.Local != nil && cold.IsLocal(object) {
		return s.opts.Local
	}
	return s.opts.Cold
}
