package cold

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"firn/internal/blob"
	"firn/pkg/segment"
	"firn/pkg/stream"
)

// fetch gets the frames of a contiguous run by one GET and lands them. Frames that
// are not what the catalog says are fetched once more, again by one GET a run: a
// flipped bit on the way is not a damaged object.
func (s *Store) fetch(object string, run []segment.Part) {
	bad, err := s.try(object, run)
	if len(bad) == 0 {
		return
	}
	s.log.Warn("cold data fails its checksum, fetching again", "key", object, "offset", bad[0].Offset, "err", err)
	for len(bad) > 0 {
		n := contiguous(bad)
		again, err := s.try(object, bad[:n])
		bad = bad[n:]
		if len(again) == 0 {
			continue
		}
		s.suspect(object, "cold data is damaged", "offset", again[0].Offset, "err", err)
		s.fail(object, again,
			fmt.Errorf("read %s at %d: %w: %w", object, again[0].Offset, stream.ErrColdUnavailable, err))
	}
}

// contiguous is how many of the parts, of which there is one at least, lie one
// after another.
func contiguous(parts []segment.Part) int {
	n := 1
	for n < len(parts) && parts[n-1].Offset+uint64(parts[n-1].Length) == parts[n].Offset {
		n++
	}
	return n
}

// try lands the frames of a run but for those that fail their checks, which it
// returns with the first reason.
func (s *Store) try(object string, run []segment.Part) (bad []segment.Part, reason error) {
	first, last := run[0], run[len(run)-1]
	n := last.Offset + uint64(last.Length) - first.Offset
	data, _, err := blob.ReadAll(s.stop, s.blobs, object, int64(first.Offset), int64(n))
	if err != nil {
		s.failed(object, err)
		// An object that is too short or was cut on the way is as bad as a flipped one.
		if errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrRange) {
			s.metrics.corrupt.Add(float64(len(run)))
			return run, fmt.Errorf("%w: %w", segment.ErrCorrupt, err)
		}
		err = unavailable("get", object, err)
		s.fail(object, run, err)
		return nil, err
	}
	s.metrics.fetched.Add(float64(n))
	errs := make([]error, len(run))
	var next atomic.Int64
	decode := func() {
		for i := next.Add(1) - 1; i < int64(len(run)); i = next.Add(1) - 1 {
			p := run[i]
			at := p.Offset - first.Offset
			errs[i] = s.decode(object, p, data[at:at+uint64(p.Length)])
		}
	}
	// One reader alone is to have the frames as fast as the machine can decompress.
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(run)) - 1 {
		others.Go(decode)
	}
	decode()
	others.Wait()
	for i, err := range errs {
		if err != nil {
			if bad = append(bad, run[i]); len(bad) == 1 {
				reason = err
			}
		}
	}
	return bad, reason
}

// decode lands one frame, or returns how it fails its checks.
func (s *Store) decode(object string, p segment.Part, compressed []byte) error {
	content, err := s.decoder.DecodeFrame(make([]byte, 0, p.Content), compressed, p.Frame)
	if err != nil && s.opts.fault == FaultUnchecked {
		content, err = make([]byte, p.Content), nil
	}
	if err != nil {
		s.metrics.corrupt.Inc()
		return err
	}
	s.land(frameKey{object, p.Offset}, content)
	return nil
}

func isMissing(err error) bool { return errors.Is(err, blob.ErrNotFound) }
