package main

import (
	"context"
	"fmt"
	"io"

	"firn/pkg/client"
	"firn/pkg/stream"
)

type streamCat struct {
	clients
	streamArgument
	Follow bool   `short:"f" help:"At the tail, wait for more."`
	From   string `placeholder:"OFFSET" help:"Begin at this offset, or at the tail with now (default: the first byte that is kept)."`
}

// Run prints a stream to its tail, or until it is closed or ctx ends.
func (c *streamCat) Run(ctx context.Context, i *invocation) error {
	n, err := c.parse()
	if err != nil {
		return err
	}
	cl, err := c.client(i)
	if err != nil {
		return err
	}
	at, err := c.start(ctx, cl, n, i.stderr)
	if err != nil {
		return c.advise(i, err)
	}
	err = c.copy(ctx, cl, n, &at, i.stdout)
	switch {
	case c.Follow && ctx.Err() != nil:
		return nil // that is how following ends
	case err != nil && !at.IsZero():
		return fmt.Errorf("%w\nfirn stream cat --from %s goes on where this ended", c.advise(i, err), at)
	}
	return c.advise(i, err)
}

// start resolves --from.
func (c *streamCat) start(ctx context.Context, cl *client.Client, n stream.Name, stderr io.Writer) (stream.Offset, error) {
	if c.From == "" {
		return earliest(ctx, cl, n, stderr)
	}
	s, err := stream.ParseStart(c.From)
	switch {
	case err != nil:
		return stream.Offset{}, fmt.Errorf("--from %q: %w", c.From, err)
	case s == stream.Beginning:
		return stream.Offset{}, nil
	case s.IsNow():
		info, err := cl.Head(ctx, n)
		return info.Tail, err
	}
	return stream.ParseOffset(c.From)
}

// copy writes pages and moves at behind what was written.
func (c *streamCat) copy(ctx context.Context, cl *client.Client, n stream.Name, at *stream.Offset, w io.Writer) error {
	for cursor := ""; ; {
		var p client.Page
		var err error
		if c.Follow {
			p, err = cl.Poll(ctx, n, *at, cursor)
		} else {
			p, err = cl.Read(ctx, n, *at)
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(p.Data); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		*at, cursor = p.Next, p.Cursor
		if p.Closed || p.UpToDate && !c.Follow {
			return nil
		}
	}
}

// earliest returns the offset of the first byte that can be read, and says when
// there was something before it.
func earliest(ctx context.Context, cl *client.Client, n stream.Name, stderr io.Writer) (stream.Offset, error) {
	info, err := cl.Head(ctx, n)
	if err != nil || info.Snapshot == nil || info.Snapshot.Position == 0 {
		return stream.Offset{}, err
	}
	fmt.Fprintf(stderr, "firn: %s begins at position %d, a snapshot stands for what was before\n", n, info.Snapshot.Position)
	return *info.Snapshot, nil
}
