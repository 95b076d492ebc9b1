package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// output is the flag of a command that prints what it found.
type output struct {
	Output string `name:"output" short:"o" enum:"table,json" default:"table" placeholder:"FORMAT" help:"table is for people, json for programs (default table)."`
}

// print writes v as JSON, or what table writes for people.
func (o output) print(w io.Writer, v any, table func(w io.Writer)) error {
	if o.Output == "json" {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	table(t)
	return t.Flush()
}

// size is a number of bytes for people.
func size(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/(1<<10), 0
	for v >= 1<<10 && unit < 4 {
		v, unit = v/(1<<10), unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit])
}
