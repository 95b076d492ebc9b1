package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"

	"firn/pkg/stream"
)

// Step is what [Stream.Sync] yields: a snapshot, or a page to be applied to it.
type Step struct {
	// Snapshot, if not nil, replaces all that was applied so far. It is valid until
	// the next step, and empty if the stream has none. When reading it fails with an
	// [ErrUnreachable], going on with the iteration begins anew.
	Snapshot *Snapshot
	Page
}

// Sync yields what it takes to build a state and to keep it up to date, for ever or
// until the stream is closed (X§3.3). It begins with a snapshot and what came after,
// reads on to the tail, and waits for more as [Stream.Follow] does. With an offset that
// was the Next of a step in an earlier life of the program it goes on from there; with
// an empty one it begins from nothing.
//
// Whenever a snapshot has overtaken the reader, and when a bootstrap broke off, another
// Snapshot comes, that replaces everything. Between two of them no byte is skipped or
// repeated. It ends as [Stream.Follow] does.
func (s *Stream) Sync(ctx context.Context, from Offset) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		y := syncer{s: s, back: backoff{retry: s.o.Retry}}
		y.reader = s.reader(from, true, func(p Page) bool {
			y.back.succeeded()
			return yield(Step{Page: p}, nil)
		})
		y.yield = func(sn *Snapshot) bool { return yield(Step{Snapshot: sn}, nil) }
		if err := y.run(ctx, from == ""); err != nil && !y.reader.left {
			yield(Step{}, err)
		}
	}
}

// syncer alternates between bootstraps and reading.
type syncer struct {
	s      *Stream
	reader *reader
	yield  func(*Snapshot) bool
	back   backoff // between bootstraps
}

func (y *syncer) run(ctx context.Context, anew bool) error {
	for {
		if anew {
			if err := y.bootstrap(ctx); err != nil {
				if err = y.back.wait(ctx, err); err != nil {
					return err
				}
				continue
			}
		}
		err := y.reader.run(ctx)
		if err == nil || !trimmed(err) {
			return err
		}
		if anew {
			// Overtaken at once: it can happen, but must not become a loop.
			if err := sleep(ctx, y.s.o.Retry.First); err != nil {
				return err
			}
		}
		anew = true
	}
}

// bootstrap hands on the snapshot and, in one page, the updates after it, and puts the
// reader behind them. Where it fails, nothing of the page was handed on.
func (y *syncer) bootstrap(ctx context.Context) error {
	b, err := y.s.bootstrap(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	first, err := b.NextPart()
	if err != nil {
		return unexpected(err)
	}
	if !y.yield(&Snapshot{io.NopCloser(first), first.ContentType, b.Snapshot}) {
		y.reader.left = true
		return nil
	}
	// If reading the snapshot failed, so does this.
	p := Page{Next: b.Next, UpToDate: b.UpToDate || b.Closed, Closed: b.Closed}
	if p.Data, p.ContentType, err = updates(b, y.s.o.PageBytes); err != nil {
		return err
	}
	y.reader.restart()
	y.reader.take(p)
	return nil
}

// updates reads the parts after the snapshot.
func updates(b *Bootstrap, limit int) (data []byte, contentType string, err error) {
	var wire bytes.Buffer
	for {
		part, err := b.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, "", err
		}
		// Messages become the array that a page has on the wire.
		if contentType = part.ContentType; stream.ModeOf(contentType) == stream.JSON {
			sep := byte(',')
			if wire.Len() == 0 {
				sep = '['
			}
			wire.WriteByte(sep)
		}
		if _, err := wire.ReadFrom(io.LimitReader(part, int64(limit-wire.Len())+1)); err != nil {
			return nil, "", err
		}
		if wire.Len() > limit {
			return nil, "", fmt.Errorf("%w: more than %d bytes at a time", ErrAnswer, limit)
		}
	}
	if wire.Len() > 0 && stream.ModeOf(contentType) == stream.JSON {
		wire.WriteByte(']')
	}
	data, err = stored(wire.Bytes(), contentType)
	return data, contentType, err
}

// unexpected is the error of a bootstrap that ends before its first part.
func unexpected(err error) error {
	if err == io.EOF {
		return fmt.Errorf("%w: a bootstrap without parts", ErrAnswer)
	}
	return err
}
