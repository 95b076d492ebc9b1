package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/admin"
	"firn/internal/backup"
	"firn/internal/blob"
	"firn/internal/config"
)

var (
	// errNoBackup: there is nothing to make copies in.
	errNoBackup = errors.New("there is no cold storage to rebuild from: name it with --cold")
	// errMissing: objects that a copy names are not in the bucket.
	errMissing = errors.New("objects are missing, see above")
)

// backupCommand is `firn backup`.
type backupCommand struct {
	operators
	output
	settings
	To string `placeholder:"URL" help:"Copy the newest copy, and all objects that it names, from the cold storage of the settings to this file:// or s3:// URL. What is there already stays. No server is asked."`
}

// Run has a server copy its catalog, and says up to when everything is copied; or it
// copies all of it to another bucket.
func (c *backupCommand) Run(ctx context.Context, i *invocation) error {
	if c.To != "" {
		return c.archive(ctx, i)
	}
	var done admin.Copied
	if err := c.call(ctx, i, http.MethodPost, "/admin/backup", &done); err != nil {
		return err
	}
	return c.print(i.stdout, done, func(w io.Writer) {
		fmt.Fprintf(w, "everything up to\t%s\tis in the bucket\n", done.UpTo.Format(time.RFC3339Nano))
	})
}

func (c *backupCommand) archive(ctx context.Context, i *invocation) error {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return err
	}
	if conf.Cold.URL.Kind == config.ColdNone {
		return errNoBackup
	}
	o := backup.ArchiveOptions{Logger: newLogger(i.stderr, conf.Log), Progress: follow(i.stderr)}
	if o.From, err = openBlobs(ctx, conf, o.Logger, prometheus.NewRegistry()); err != nil {
		return fmt.Errorf("open cold storage %s: %w", conf.Cold.URL, err)
	}
	if o.To, err = openOther(ctx, conf, "--to", c.To, o.Logger); err != nil {
		return err
	}
	done, err := backup.Archive(ctx, o)
	if err != nil {
		return err
	}
	if err := c.print(i.stdout, done, func(w io.Writer) {
		fmt.Fprintf(w, "store\t%s, as of %s\n", done.Store, done.Copy.Format(time.RFC3339Nano))
		fmt.Fprintf(w, "objects\t%d, of which %d were copied, %s\n", done.Objects, done.Copied, size(uint64(done.Bytes)))
		for _, m := range done.Missing {
			fmt.Fprintf(w, "missing\t%s\n", m)
		}
	}); err != nil {
		return err
	}
	if len(done.Missing) > 0 {
		return errMissing
	}
	return nil
}

// openOther opens the bucket that a flag names, with the credentials of the settings.
func openOther(ctx context.Context, conf config.Config, flag, text string, log *slog.Logger) (blob.Store, error) {
	url, err := config.ParseColdURL(text)
	if err == nil && (url.Kind == config.ColdNone || url.Kind == config.ColdDefault) {
		err = errors.New("it names no bucket")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %w", flag, err, errUsage)
	}
	conf.Cold.URL = url
	b, err := openBlobs(ctx, conf, log, prometheus.NewRegistry())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", url, err)
	}
	return b, nil
}

// followEvery is how often a transfer tells how far it is.
const followEvery = 5 * time.Second

// follow tells how far a transfer is.
func follow(w io.Writer) func(backup.Progress) {
	told := time.Now()
	return func(p backup.Progress) {
		if time.Since(told) >= followEvery {
			told = time.Now()
			fmt.Fprintf(w, "%d objects, %d of them copied, %s\n", p.Objects, p.Copied, size(uint64(p.Bytes)))
		}
	}
}
