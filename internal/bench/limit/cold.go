package limit

import (
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"

	"firn/internal/blob"
	"firn/pkg/segment"
)

// part is some frames of an object that one GET takes.
type part struct {
	object       string
	offset, size int64
	frames       []segment.Frame
}

// Objects are the sealed objects of a store, ready to be read.
type Objects struct {
	store   blob.Store
	decoder *segment.Decoder
	parts   []part
	// Length is of the frames as they are stored, Content once they are decoded.
	Length, Content int64
}

// FindObjects finds the objects of a stream that it does not share with others, whose id
// is part of their keys, and divides them into ranges of about size bytes, at the edges of frames.
// What was written twice, as by two seals that raced, it takes once.
func FindObjects(ctx context.Context, store blob.Store, stream string, size int64) (*Objects, error) {
	o := &Objects{store: store}
	var err error
	if o.decoder, err = segment.NewDecoder(segment.DecoderOptions{}); err != nil {
		return nil, err
	}
	type object struct {
		key    string
		to     uint64
		frames []segment.Frame
	}
	longest := map[uint64]object{} // by where they begin
	err = store.List(ctx, "", "", func(i blob.Info) error {
		if !strings.HasSuffix(i.Key, ".zst") || !strings.Contains(i.Key, stream) {
			return nil
		}
		d, err := segment.ReadTail(readerAt{ctx, store, i.Key}, i.Size)
		if err != nil {
			return fmt.Errorf("read %s: %w", i.Key, err)
		}
		if e := d.Entries[0]; len(d.Entries) == 1 && e.Stream == stream && e.To > longest[e.From].to {
			longest[e.From] = object{i.Key, e.To, d.Frames}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find objects: %w", err)
	}
	for at := uint64(0); longest[at].to > at; at = longest[at].to {
		o.divide(longest[at].key, longest[at].frames, size)
	}
	return o, nil
}

func (o *Objects) divide(key string, frames []segment.Frame, size int64) {
	at := int64(0)
	p := part{object: key}
	for _, f := range frames {
		if p.size > 0 && p.size+int64(f.Length) > size {
			o.parts = append(o.parts, p)
			p = part{object: key, offset: at}
		}
		p.frames = append(p.frames, f)
		p.size += int64(f.Length)
		at += int64(f.Length)
		o.Length += int64(f.Length)
		o.Content += int64(f.Content)
	}
	o.parts = append(o.parts, p)
}

// DecodeAll gets and decodes everything once, with so many GETs at a time, and returns
// the bytes of content.
func (o *Objects) DecodeAll(ctx context.Context, parallel int) (int64, error) {
	todo := make(chan part)
	sums := make(chan int64, parallel)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(todo)
		for _, p := range o.parts {
			select {
			case todo <- p:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range parallel {
		g.Go(func() error {
			var buf []byte
			sum := int64(0)
			for p := range todo {
				data, _, err := blob.ReadAll(ctx, o.store, p.object, p.offset, p.size)
				if err != nil {
					return err
				}
				for _, f := range p.frames {
					if cap(buf) < int(f.Content) {
						buf = make([]byte, 0, f.Content)
					}
					content, err := o.decoder.DecodeFrame(buf[:0:f.Content], data[:f.Length], f)
					if err != nil {
						return err
					}
					data = data[f.Length:]
					sum += int64(len(content))
				}
			}
			sums <- sum
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("read objects: %w", err)
	}
	total := int64(0)
	for range parallel {
		total += <-sums
	}
	return total, nil
}

// readerAt reads an object by ranges.
type readerAt struct {
	ctx   context.Context
	store blob.Store
	key   string
}

func (r readerAt) ReadAt(p []byte, off int64) (int, error) {
	b, info, err := blob.ReadAll(r.ctx, r.store, r.key, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	n := copy(p, b)
	if n < len(p) || off+int64(n) > info.Size {
		return n, io.EOF
	}
	return n, nil
}
