package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"firn/internal/admin"
	"firn/pkg/client"
)

// streamCommand is `firn stream`.
type streamCommand struct {
	Ls     streamList   `cmd:"" help:"List the streams of a bucket."`
	Stat   streamStat   `cmd:"" help:"Show where the bytes of a stream are."`
	Cat    streamCat    `cmd:"" help:"Print the bytes of a stream; of a JSON stream one message a line."`
	Export streamExport `cmd:"" help:"Write all bytes of a stream to a file; of a JSON stream one message a line."`
}

type streamList struct {
	clients
	output
	Bucket string `arg:"" help:"The bucket. Ids with slashes, which the flat surface makes, are not listed."`
	Prefix string `placeholder:"TEXT" help:"Only ids that begin with this."`
}

// Run lists the streams of a bucket, all pages of them.
func (c *streamList) Run(ctx context.Context, i *invocation) error {
	cl, err := c.client(i, once)
	if err != nil {
		return err
	}
	all := struct {
		Bucket  string                `json:"bucket"`
		Streams []client.ListedStream `json:"streams"`
	}{c.Bucket, []client.ListedStream{}}
	for s, err := range cl.Streams(ctx, c.Bucket, c.Prefix) {
		if err != nil {
			return c.advise(i, err)
		}
		all.Streams = append(all.Streams, s)
	}
	return c.print(i.stdout, all, func(w io.Writer) {
		fmt.Fprintln(w, "STREAM\tSTATUS\tTYPE\tBYTES\tCREATED\tLAST WRITE")
		for _, s := range all.Streams {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", printable(s.ID), s.Status, s.ContentType, s.Tail, date(s.CreatedMs), date(s.LastWriteMs))
		}
	})
}

func date(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// printable is a stream's id as a terminal survives it.
func printable(id string) string {
	if q := fmt.Sprintf("%q", id); q != `"`+id+`"` {
		return q
	}
	return id
}

type streamStat struct {
	operators
	output
	streamArgument
}

// Run shows what the catalog has of a stream.
func (c *streamStat) Run(ctx context.Context, i *invocation) error {
	return describe(ctx, i, c.operators, c.output, c.streamArgument, http.MethodGet, "")
}

// sealCommand is `firn seal`.
type sealCommand struct {
	operators
	output
	streamArgument
}

// Run seals a stream and shows it.
func (c *sealCommand) Run(ctx context.Context, i *invocation) error {
	return describe(ctx, i, c.operators, c.output, c.streamArgument, http.MethodPost, "/seal")
}

// evictCommand is `firn evict`.
type evictCommand struct {
	operators
	output
	streamArgument
}

// Run evicts the sealed bytes of a stream and shows it.
func (c *evictCommand) Run(ctx context.Context, i *invocation) error {
	return describe(ctx, i, c.operators, c.output, c.streamArgument, http.MethodPost, "/evict")
}

// describe makes a request whose answer is the description of a stream, and prints it.
func describe(ctx context.Context, i *invocation, o operators, out output, a streamArgument, method, action string) error {
	n, err := a.parse()
	if err != nil {
		return err
	}
	var d admin.Description
	if err := o.call(ctx, i, method, adminPath(n)+action, &d); err != nil {
		return err
	}
	return out.print(i.stdout, d, func(w io.Writer) { tabulate(w, d) })
}

func tabulate(w io.Writer, d admin.Description) {
	state := "open"
	if d.Closed {
		state = "closed"
	}
	fmt.Fprintf(w, "stream\t%s, %s\n", printable(d.Bucket+"/"+d.Stream), state)
	fmt.Fprintf(w, "content type\t%s, kept as %s\n", d.ContentType, d.Mode)
	fmt.Fprintf(w, "incarnation\t%s\n", d.Incarnation)
	fmt.Fprintf(w, "created\t%s\n", d.CreatedAt)
	fmt.Fprintf(w, "last write\t%s\n", d.LastWriteAt)
	fmt.Fprintf(w, "tail offset\t%s\n", d.TailOffset)
	m := d.Marks
	fmt.Fprintf(w, "cold only\t%s\tfrom %d to %d\n", size(m.Cut-m.Floor), m.Floor, m.Cut)
	fmt.Fprintf(w, "cold and hot\t%s\tfrom %d to %d\n", size(m.Sealed-m.Cut), m.Cut, m.Sealed)
	fmt.Fprintf(w, "hot only\t%s\tfrom %d to %d\n", size(m.Tail-m.Sealed), m.Sealed, m.Tail)
	fmt.Fprintf(w, "readable from\t%d\n", d.Earliest)
	if d.Snapshot != nil {
		fmt.Fprintf(w, "snapshot\t%s, %s, at %s\n", size(uint64(d.Snapshot.Size)), d.Snapshot.ContentType, d.Snapshot.Offset)
	}
	if d.ForkedFrom != nil {
		fmt.Fprintf(w, "forked from\t%s at %d\n", printable(*d.ForkedFrom), m.Base)
	}
	fmt.Fprintf(w, "forks\t%d\n", d.ForkCount)
	fmt.Fprintf(w, "producers\t%d\n", d.Producers)
	fmt.Fprintf(w, "segments\t%d\n", d.SegmentCount)
	for _, s := range d.Segments {
		fmt.Fprintf(w, "\tfrom %d to %d\t%s\t%s\n", s.From, s.To, size(s.Length), s.Object)
	}
	if more := d.SegmentCount - uint64(len(d.Segments)); more > 0 {
		fmt.Fprintf(w, "\tand %d more\n", more)
	}
}
