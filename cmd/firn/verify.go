package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"firn/internal/admin"
	"firn/internal/blob/fs"
	"firn/internal/config"
	"firn/internal/verify"
	"firn/pkg/client"
)

// verifyCommand is `firn verify`.
type verifyCommand struct {
	operators
	output
	settings
	Online    bool         `help:"Have a running server verify itself. Without it the data directory and the cold storage of the settings are read, and no server may run on them."`
	Structure bool         `help:"Leave the bytes of objects unread: look at the catalog, that each object is there, and what it says of itself."`
	Rate      config.Bytes `placeholder:"SIZE" help:"Read at most this much of objects a second, such as 20MiB (default: no bound)."`
}

var (
	// errProblems: the store was looked at, and not all is well.
	errProblems = errors.New("problems were found")
	// errUnchecked: nothing is known about some objects.
	errUnchecked = errors.New("the object store did not answer for all objects")
)

// Run looks at the whole store and prints what is wrong.
func (c *verifyCommand) Run(ctx context.Context, i *invocation) error {
	look := c.offline
	if c.Online {
		look = c.online
	}
	report, err := look(ctx, i, func(p verify.Progress) {
		fmt.Fprintf(i.stderr, "%d of %d objects, %s of %s, %d problems\n", p.Objects, p.Total, size(p.Read), size(p.Bytes), p.Found)
	})
	if err != nil {
		return err
	}
	if err := c.print(i.stdout, report, func(w io.Writer) { tabulateReport(w, report) }); err != nil {
		return err
	}
	switch {
	case report.Found > 0:
		return fmt.Errorf("%d %w", report.Found, errProblems)
	case report.Unchecked > 0:
		return fmt.Errorf("%w: %d are unchecked", errUnchecked, report.Unchecked)
	}
	return nil
}

func tabulateReport(w io.Writer, r *verify.Report) {
	fmt.Fprintf(w, "store\t%s\n", r.Store)
	fmt.Fprintf(w, "streams\t%d\thot\t%s\n", r.Streams, size(r.HotBytes))
	fmt.Fprintf(w, "objects\t%d\tsize\t%s\tread\t%s\n", r.Objects, size(r.ObjectBytes), size(r.ReadBytes))
	fmt.Fprintf(w, "segments\t%d\tsnapshots\t%d\n", r.Segments, r.Snapshots)
	fmt.Fprintf(w, "unknown objects\t%d\n", r.Unknown)
	for _, k := range r.UnknownKeys[:min(len(r.UnknownKeys), 20)] {
		fmt.Fprintf(w, "\t%s\n", k)
	}
	if r.Unchecked > 0 {
		fmt.Fprintf(w, "unchecked\t%d\n", r.Unchecked)
	}
	fmt.Fprintf(w, "problems\t%d\n", r.Found)
	for _, p := range r.Problems {
		fmt.Fprintf(w, "\t%s\t%s\n", p.Code, p)
	}
	if r.Found > len(r.Problems) {
		fmt.Fprintf(w, "\tand %d more\n", r.Found-len(r.Problems))
	}
}

// offline reads the data directory and the cold storage that the settings name.
func (c *verifyCommand) offline(ctx context.Context, i *invocation, progress func(verify.Progress)) (*verify.Report, error) {
	conf, _, err := c.load(i.environ)
	if err != nil {
		return nil, err
	}
	db, err := verify.Open(filepath.Join(conf.DataDir, "hot"), nil)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	o := verify.RunOptions{
		State: func() (verify.Reader, func()) { return db, func() {} }, Structure: c.Structure, Rate: int64(c.Rate), Progress: progress,
	}
	if blobs := filepath.Join(conf.DataDir, "blobs"); exists(blobs) {
		if o.Local, err = fs.Open(blobs, fs.Options{}); err != nil {
			return nil, err
		}
	}
	if conf.Cold.URL.Kind != config.ColdNone {
		log := newLogger(i.stderr, conf.Log)
		if o.Remote, err = openBlobs(ctx, conf, log, prometheus.NewRegistry()); err != nil {
			return nil, fmt.Errorf("open cold storage %s: %w", conf.Cold.URL, err)
		}
	}
	return verify.Run(ctx, o)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// online has a running server do it, and follows how it gets on.
func (c *verifyCommand) online(ctx context.Context, i *invocation, progress func(verify.Progress)) (*verify.Report, error) {
	q := url.Values{"structure": {strconv.FormatBool(c.Structure)}, "rate": {strconv.FormatInt(int64(c.Rate), 10)}}
	resp, root, err := c.open(ctx, i, http.MethodPost, "/admin/verify?"+q.Encode())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	told := time.Now()
	for lines := json.NewDecoder(resp.Body); ; {
		var v admin.Verification
		if err := lines.Decode(&v); err != nil {
			return nil, fmt.Errorf("%s: %w: the verification broke off, is the server still there? %w", root, client.ErrAnswer, err)
		}
		switch {
		case v.Report != nil:
			return v.Report, nil
		case v.Error != "":
			return nil, fmt.Errorf("the server could not go on: %s", v.Error)
		case v.Progress != nil && time.Since(told) >= progressEvery:
			told = time.Now()
			progress(*v.Progress)
		}
	}
}
