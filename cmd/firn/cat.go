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
	Follow bool   `short:"f" help:"At the tail, wait for more. Go on where it was when the server comes back."`
	From   string `placeholder:"OFFSET" help:"Begin at this offset, or at the tail with now (default: the first byte that is kept)."`
}

// Run prints a stream to its tail, or until it is closed or ctx ends.
func (c *streamCat) Run(ctx context.Context, i *invocation) error {
	n, err := c.parse()
	if err != nil {
		return err
	}
	at := client.Offset(c.From)
	if at != "" {
		if _, err := stream.ParseStart(c.From); err != nil {
			return fmt.Errorf("--from %q: %w", c.From, err)
		}
	}
	// Once: a server that was never there is not to be waited for.
	cl, err := c.client(i, once)
	if err != nil {
		return err
	}
	info, err := cl.Stream(n).Head(ctx)
	if err != nil {
		return c.advise(i, err)
	}
	if at == "" {
		at = earliest(n, info, i.stderr)
	}
	pages := cl.Stream(n).Read
	if c.Follow {
		if cl, err = c.client(i, client.Retry{}); err != nil {
			return err
		}
		pages = cl.Stream(n).Follow
	}
	for page, err := range pages(ctx, at) {
		if c.Follow && ctx.Err() != nil {
			return nil // that is how following ends
		}
		if err != nil {
			return fmt.Errorf("%w\nfirn stream cat --from=%s goes on where this ended", c.advise(i, err), at)
		}
		if _, err := i.stdout.Write(page.Data); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		at = page.Next
	}
	return nil
}

// earliest returns the offset of the first byte that can be read, and says when
// there was something before it.
func earliest(n stream.Name, info client.Info, stderr io.Writer) client.Offset {
	o, err := stream.ParseOffset(string(info.Snapshot))
	if err != nil || o.Position == 0 {
		return client.Beginning
	}
	fmt.Fprintf(stderr, "firn: %s begins at position %d, a snapshot stands for what was before\n", n, o.Position)
	return info.Snapshot
}
