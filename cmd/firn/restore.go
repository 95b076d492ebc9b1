package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/backup"
	"firn/internal/config"
	"firn/internal/subscribe/glob"
	"firn/pkg/stream"
)

// restoreCommand is `firn restore`.
type restoreCommand struct {
	output
	settings
	From    string `required:"" placeholder:"URL" help:"The bucket with the copy: an archive of firn backup --to, or the cold storage of a server. Nothing changes there."`
	Streams string `placeholder:"GLOB" help:"Restore only streams whose BUCKET/STREAM matches: * is one segment, ** any number. What these were forked from comes along, hidden; subscriptions do not."`
	Until   string `placeholder:"TIME" help:"Take the newest copy that is not younger (RFC 3339)."`
}

// Run makes a store in the cold storage and the data directory that the settings name.
func (c *restoreCommand) Run(ctx context.Context, i *invocation) error {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return err
	}
	if conf.Cold.URL.Kind == config.ColdNone {
		return errNoBackup
	}
	log := newLogger(i.stderr, conf.Log)
	o := backup.RestoreOptions{Dir: filepath.Join(conf.DataDir, "hot"), Hot: hotOptions(conf, log, nil)}
	o.Logger, o.Progress = log, follow(i.stderr)
	if o.Until, err = moment(c.Until); err != nil {
		return err
	}
	if c.Streams != "" {
		p, err := glob.Parse(c.Streams)
		if err != nil {
			return fmt.Errorf("--streams: %w; %w", err, errUsage)
		}
		o.Wanted = func(n stream.Name) bool { return p.Match(n.String()) }
	}
	if o.From, err = openOther(ctx, conf, "--from", c.From, log); err != nil {
		return err
	}
	if o.To, err = openBlobs(ctx, conf, log, prometheus.NewRegistry()); err != nil {
		return fmt.Errorf("open cold storage %s: %w", conf.Cold.URL, err)
	}
	told := &teller{w: i.stdout, json: c.Output == "json"}
	o.Stream = told.stream
	report, err := backup.Restore(ctx, o)
	if err != nil {
		return err
	}
	if err := told.end(report); err != nil {
		return err
	}
	if !report.Complete() {
		return errLoss
	}
	return nil
}
