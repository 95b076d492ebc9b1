package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"firn/internal/admin"
)

// bucketCommand is `firn bucket`.
type bucketCommand struct {
	Ls bucketList `cmd:"" help:"List the buckets."`
}

type bucketList struct {
	operators
	output
}

// Run lists the buckets of a server.
func (c *bucketList) Run(ctx context.Context, i *invocation) error {
	var b admin.Buckets
	if err := c.call(ctx, i, http.MethodGet, "/admin/buckets", &b); err != nil {
		return err
	}
	return c.print(i.stdout, b, func(w io.Writer) {
		fmt.Fprintln(w, "BUCKET\tSTREAMS")
		for _, b := range b.Buckets {
			fmt.Fprintf(w, "%s\t%d\n", b.Bucket, b.Streams)
		}
	})
}
