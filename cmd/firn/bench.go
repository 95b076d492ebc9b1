package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"firn/internal/bench"
)

// errMeasuredErrors: a server has answered wrongly, so its figures say nothing.
var errMeasuredErrors = errors.New("cases had errors: their figures say nothing")

// benchCommand is `firn bench`.
type benchCommand struct {
	output
	Scenarios []string `arg:"" optional:"" name:"scenario" help:"append, producer, read, cold, fanout, bootstrap, create, tiny, seal, start, memory (default all)."`

	URL    string   `name:"url" placeholder:"URL" help:"Measure the server there; streams are made and deleted in its bucket bench (default: a server that is started for it)."`
	Flat   bool     `help:"The URL is where streams live, on any server of the protocol."`
	VS     string   `name:"vs" placeholder:"URL" help:"Measure a second server in turns with the first; the URL is where its streams live."`
	Header []string `placeholder:"NAME:VALUE" sep:"none" help:"Send this with each request to --url."`
	Cold   string   `placeholder:"URL" help:"Cold storage of servers that are started (default a folder)."`
	Serve  []string `placeholder:"FLAG" sep:"none" help:"Pass this flag to servers that are started, as in --serve=--seal.concurrency=4."`
	Dir    string   `placeholder:"DIR" help:"Keep the data of servers that are started in this directory, on the disk that is to be measured."`

	Rounds   int           `default:"3" help:"How often the sides take turns (default 3)."`
	Interval time.Duration `default:"1s" placeholder:"DURATION" help:"How long a side is measured in a round (default 1s)."`
	Full     bool          `help:"Take the sizes of the targets: 1 GiB cold, a million streams."`
	Quiet    bool          `short:"q" help:"Do not tell what is being done."`

	Streams int  `help:"Append: streams. With this or one of the next four it is one case instead of five."`
	Clients int  `help:"Append: clients."`
	Size    int  `help:"Append: bytes of a record, at least 80."`
	Batch   int  `help:"Append: records of one append."`
	JSON    bool `name:"json" help:"Append: records are JSON."`
	Readers int  `help:"Fan-out and memory: live readers (default 1000)."`
	Rate    int  `help:"Fan-out: messages a second (default 20)."`
	MiB     int  `name:"mib" help:"Read and cold: size of what is read (default 64)."`
	Many    int  `help:"Start: streams (default 20000)."`
}

// Run measures and prints what was found, also after an interrupt.
func (c *benchCommand) Run(ctx context.Context, i *invocation) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o := bench.Options{
		Scenarios: c.Scenarios, URL: c.URL, Flat: c.Flat, VS: c.VS, Fields: c.Header, Cold: c.Cold, ServerArgs: c.Serve, Dir: c.Dir,
		Rounds: c.Rounds, Interval: c.Interval, Full: c.Full,
		Streams: c.Streams, Clients: c.Clients, Size: c.Size, Batch: c.Batch, JSON: c.JSON,
		Readers: c.Readers, PerSecond: c.Rate, ReadBytes: int64(c.MiB) << 20, ColdBytes: int64(c.MiB) << 20, Many: c.Many,
		Program: self, Environ: ownEnviron(i.environ),
	}
	if !c.Quiet {
		o.Progress = i.stderr
	}
	report, err := bench.Run(ctx, o)
	if errors.Is(err, bench.ErrScenario) {
		return fmt.Errorf("%w; %w", err, errUsage)
	}
	if report == nil {
		return err
	}
	if c.Output == "json" {
		err = errors.Join(err, c.print(i.stdout, report, nil))
	} else {
		err = errors.Join(err, report.WriteTable(i.stdout))
	}
	if n := report.Failures(); n > 0 && err == nil {
		err = fmt.Errorf("%d %w", n, errMeasuredErrors)
	}
	return err
}

// ownEnviron is the environment without the settings of another server.
func ownEnviron(environ []string) []string {
	var own []string
	for _, entry := range environ {
		if !strings.HasPrefix(entry, "FIRN_") {
			own = append(own, entry)
		}
	}
	return own
}

// benchLimitCommand is `firn bench-limit`, which `firn bench` starts.
type benchLimitCommand struct {
	Pebble bool   `help:"Open the database there, and end."`
	Dir    string `arg:""`
}

// Run serves answers that cost nothing, or opens a database.
func (c *benchLimitCommand) Run(ctx context.Context, i *invocation) error {
	if c.Pebble {
		return bench.OpenPebble(c.Dir, i.stdout)
	}
	return bench.ServeLimits(ctx, c.Dir, os.Stdin, i.stdout)
}
