package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"firn/internal/bench/limit"
)

// ServeLimits runs the server that has nothing to do, over a directory, until ctx ends or
// its input does, which is when the process that started it is gone. Its URL is the first
// line of its output.
func ServeLimits(ctx context.Context, dir string, input io.Reader, output io.Writer) error {
	s, err := limit.NewServer(dir)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(fmt.Errorf("listen: %w", err), s.Close())
	}
	srv := &http.Server{Handler: s}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	fmt.Fprintf(output, "http://%s\n", l.Addr())
	gone := make(chan struct{})
	go func() {
		io.Copy(io.Discard, input)
		close(gone)
	}()
	select {
	case <-ctx.Done():
	case <-gone:
	case err := <-ended:
		return errors.Join(err, s.Close())
	}
	// Everybody who asks has ended: nothing is under way.
	return errors.Join(srv.Shutdown(context.Background()), s.Close())
}

// OpenPebble opens the database of a data directory and writes a line when it is open.
func OpenPebble(dir string, output io.Writer) error {
	took, err := limit.OpenPebble(dir, func() { fmt.Fprintln(output, "open") })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(output, took)
	return err
}
