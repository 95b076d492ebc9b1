// Command firn is the server and the tool to look at it: see `firn --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"firn/internal/config"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // it was tried and did not work
	exitUsage   = 2 // arguments or configuration are wrong: nothing was tried
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := exitCode(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr), os.Stderr)
	stop()
	os.Exit(code)
}

// exitCode says what went wrong and returns the process's exit code.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(stderr, "firn:", err)
	var usage *usageError
	if errors.As(err, &usage) || errors.Is(err, config.ErrInvalid) {
		return exitUsage
	}
	return exitFailure
}

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() + " (see firn --help)" }
func (e *usageError) Unwrap() error { return e.err }

// grammar is the command line.
type grammar struct {
	Serve  serveCommand  `cmd:"" help:"Run the server."`
	Config configCommand `cmd:"" help:"Print the settings in force, what they mean and where they come from."`
}

// invocation is what the commands get besides their flags.
type invocation struct {
	environ        []string
	stdout, stderr io.Writer
}

// run is the whole program: it parses the arguments and runs one command until it
// is done or ctx ends.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	g := new(grammar)
	g.Serve.bind()
	g.Config.bind()
	helped := false
	parser, err := kong.New(g, kong.Name("firn"), kong.UsageOnError(),
		kong.Description("A server that keeps append-only streams for years: hot in Pebble, cold in S3-compatible storage."),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil
	case err != nil:
		return &usageError{err}
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&invocation{environ: environ, stdout: stdout, stderr: stderr})
}
