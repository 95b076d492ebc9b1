package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"firn/internal/admin"
)

// errNoBackup: there is nothing to make copies in.
var errNoBackup = errors.New("there is no cold storage to rebuild from: name it with --cold")

// backupCommand is `firn backup`.
type backupCommand struct {
	operators
	output
}

// Run has a server copy its catalog, and says up to when everything is copied.
func (c *backupCommand) Run(ctx context.Context, i *invocation) error {
	var done admin.Copied
	if err := c.call(ctx, i, http.MethodPost, "/admin/backup", &done); err != nil {
		return err
	}
	return c.print(i.stdout, done, func(w io.Writer) {
		fmt.Fprintf(w, "everything up to\t%s\tis in the bucket\n", done.UpTo.Format(time.RFC3339Nano))
	})
}
