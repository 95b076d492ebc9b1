package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"firn/internal/admin"
)

// healthCommand is `firn health`. Container engines know 0 and 1 alone, so that is
// all it exits with once its arguments are read.
type healthCommand struct {
	operators
	output
	Timeout time.Duration `default:"2s" placeholder:"DURATION" help:"Take no answer for a failure after this time (default 2s)."`
}

// Run asks whether a server is ready.
func (c *healthCommand) Run(ctx context.Context, i *invocation) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	var r admin.Readiness
	if err := c.call(ctx, i, http.MethodGet, "/readyz", &r); err != nil {
		return fmt.Errorf("not ready: %v", err) // its class must not become the exit code
	}
	return c.print(i.stdout, r, func(w io.Writer) {
		fmt.Fprintln(w, "ready")
		for _, n := range r.Notes {
			fmt.Fprintln(w, n)
		}
	})
}
