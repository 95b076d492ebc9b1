// Command firn is the server and the tool to look at it: see `firn --help`.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal drains, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := exitCode(run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr), os.Stderr)
	stop()
	os.Exit(code)
}

// grammar is the command line.
type grammar struct {
	Serve   serveCommand   `cmd:"" help:"Run the server."`
	Config  configCommand  `cmd:"" help:"Print the settings in force, what they mean and where they come from."`
	Health  healthCommand  `cmd:"" help:"Ask a server whether it is ready. Exits with 0 or 1."`
	Stream  streamCommand  `cmd:"" help:"Look at streams."`
	Bucket  bucketCommand  `cmd:"" help:"Look at buckets."`
	Seal    sealCommand    `cmd:"" help:"Write all bytes of a stream to cold storage now."`
	Evict   evictCommand   `cmd:"" help:"Give up the hot copy of all sealed bytes of a stream now."`
	Backup  backupCommand  `cmd:"" help:"Have a server copy its catalog and unsealed bytes to the bucket now."`
	Restore restoreCommand `cmd:"" help:"Make a store in another bucket from a copy."`
	Rebuild rebuildCommand `cmd:"" help:"Make a lost data directory again from the bucket alone."`
	Verify  verifyCommand  `cmd:"" help:"Check every mark, object, frame and checksum, on disk and in cold storage."`
	Segment segmentCommand `cmd:"" help:"Look at objects of cold storage."`
	Bench   benchCommand   `cmd:"" help:"Measure a server beside what this machine can do at most, or beside another server."`
	Version versionCommand `cmd:"" help:"Print the version of this program."`

	BenchLimit benchLimitCommand `cmd:"" hidden:"" help:"Serve what firn bench compares with."`
}

// invocation is what the commands get besides their flags.
type invocation struct {
	environ        []string
	stdout, stderr io.Writer
}

// getenv returns an environment variable, "" if it is not set.
func (i *invocation) getenv(name string) string {
	for _, entry := range i.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// run is the whole program: it parses the arguments and runs one command until it
// is done or ctx ends.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	g := new(grammar)
	g.Serve.bind()
	g.Config.bind()
	g.Verify.bind()
	g.Backup.bind()
	g.Rebuild.bind()
	g.Restore.bind()
	helped := false
	parser, err := kong.New(g, kong.Name("firn"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Exit(func(int) { helped = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true}))
	if err != nil {
		return err
	}
	command, err := parser.Parse(args)
	switch {
	case helped:
		return nil
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return command.Run(&invocation{environ: environ, stdout: stdout, stderr: stderr})
}
