package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/backup"
	"firn/internal/config"
	"firn/pkg/stream"
	"firn/tier/hot"
)

// errLoss: what was rebuilt is not all, or nobody knows whether it is.
var errLoss = errors.New("the store is rebuilt, but bytes are missing or may be, see above")

// rebuildCommand is `firn rebuild`.
type rebuildCommand struct {
	output
	settings
	Until    string `placeholder:"TIME" help:"Take the newest copy that is not younger (RFC 3339), and nothing that was sealed after it."`
	TakeOver bool   `help:"Rebuild although a server may still be running on the bucket. It can write nothing there any more."`
}

// Run makes the data directory that the settings name from the cold storage that they
// name.
func (c *rebuildCommand) Run(ctx context.Context, i *invocation) error {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return err
	}
	if conf.Cold.URL.Kind == config.ColdNone {
		return errNoBackup
	}
	o := backup.RebuildOptions{Dir: filepath.Join(conf.DataDir, "hot"), TakeOver: c.TakeOver}
	if o.Until, err = moment(c.Until); err != nil {
		return err
	}
	log, metrics := newLogger(i.stderr, conf.Log), prometheus.NewRegistry()
	if o.Blobs, err = openBlobs(ctx, conf, log, metrics); err != nil {
		return fmt.Errorf("open cold storage %s: %w", conf.Cold.URL, err)
	}
	o.Hot, o.Logger = hotOptions(conf, log, nil), log
	told := &teller{w: i.stdout, json: c.Output == "json"}
	o.Stream = told.stream
	report, err := backup.Rebuild(ctx, o)
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

// moment reads --until, which may be empty.
func moment(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("--until wants a time such as 2026-01-31T12:00:00Z: %w; %w", err, errUsage)
	}
	return t, nil
}

// maxTold bounds the streams that are listed for people.
const maxTold = 1000

// teller prints what a rebuild says, as it says it: there may be millions of streams.
type teller struct {
	w    io.Writer
	json bool
	open int
}

// toldStream is one line of what is said to programs.
type toldStream struct {
	Stream   string `json:"stream"`
	Position uint64 `json:"position"`
	Offset   string `json:"offset"`
	// CopyPosition is the tail in the copy: what lies between was found sealed.
	CopyPosition uint64 `json:"copy_position"`
	FormerLife   uint64 `json:"former_life"`
	Closed       bool   `json:"closed"`
	Deleted      bool   `json:"deleted"`
	Unknown      bool   `json:"unknown"`
}

func (t *teller) stream(s hot.Rebuilt) error {
	offset := stream.Offset{Life: s.Life, Position: s.Tail}
	if t.json {
		return json.NewEncoder(t.w).Encode(toldStream{
			Stream: s.Name.String(), Position: s.Tail, Offset: offset.String(), CopyPosition: s.CopyTail,
			FormerLife: s.FormerLife, Closed: s.Closed, Deleted: s.Deleted, Unknown: s.Unknown,
		})
	}
	if s.Closed || s.Deleted {
		return nil // it had no bytes to come
	}
	if t.open++; t.open > maxTold {
		return nil
	}
	note := ""
	switch {
	case s.Unknown:
		note = ", made after the copy: its lifetime, its close and its producers are not known"
	case s.Tail > s.CopyTail:
		note = fmt.Sprintf(", of which %d bytes were sealed after the copy", s.Tail-s.CopyTail)
	}
	_, err := fmt.Fprintf(t.w, "%s is there up to %d (%s)%s\n", printable(s.Name.String()), s.Tail, offset, note)
	return err
}

func (t *teller) end(r *backup.Report) error {
	if t.json {
		return json.NewEncoder(t.w).Encode(struct {
			Report   *backup.Report `json:"report"`
			Complete bool           `json:"complete"`
		}{r, r.Complete()})
	}
	if more := t.open - maxTold; more > 0 {
		fmt.Fprintf(t.w, "and %d more streams, which --output json lists\n", more)
	}
	for _, l := range r.Lost {
		fmt.Fprintf(t.w, "lost: %s from %d to %d, in %s: %s\n", printable(l.Stream), l.From, l.To, l.Object, l.Reason)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(t.w, "missing: %s\n", m)
	}
	if more := r.MissingCount - len(r.Missing); more > 0 {
		fmt.Fprintf(t.w, "and %d more missing objects\n", more)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(t.w, "copy not used: %s\n", s)
	}
	_, err := fmt.Fprintf(t.w, "%d streams of store %s are rebuilt from a copy of %s, and %s that were sealed after it.\n",
		r.Streams, r.Store, r.Copy.Format(time.RFC3339Nano), size(r.Attached))
	if err == nil && !r.Stopped {
		_, err = fmt.Fprintln(t.w, "The server had not stopped in order: what was appended to these streams, created, changed or deleted after that moment is not known. Every stream begins a new life at the position above.")
	}
	return err
}
