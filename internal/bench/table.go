package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes a report for people.
func (r *Report) WriteTable(w io.Writer) error {
	m := r.Machine
	fmt.Fprintf(w, "%s, %s/%s, %d processors, %s, load %.1f before and %.1f after\n", r.Began.UTC().Format(time.RFC3339),
		m.OS, m.Arch, m.CPUs, m.Go, m.LoadBefore, m.LoadAfter)
	fmt.Fprintf(w, "server: %s\n", r.Server)
	if r.Peer != "" {
		fmt.Fprintf(w, "peer: %s\n", r.Peer)
	}
	for _, res := range r.Results {
		if err := res.write(w); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) write(w io.Writer) error {
	fmt.Fprintf(w, "\n%s: %s\n", r.Scenario, r.Case)
	if r.Skipped != "" {
		fmt.Fprintf(w, "  skipped: %s\n", r.Skipped)
	}
	if r.Error != "" {
		fmt.Fprintf(w, "  FAILED: %s\n", r.Error)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Sides) > 0 {
		fmt.Fprintln(t, "  \t/s\tlow–high\tMB/s\tp50\tp90\tp99\tp99.9\tmax\terrors")
	}
	for _, s := range r.Sides {
		l := s.Latency
		fmt.Fprintf(t, "  %s\t%s\t%s–%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", s.Name, count(s.PerSecond.Median), count(s.PerSecond.Low), count(s.PerSecond.High),
			count(s.BytesPerSecond.Median/1e6), micro(l.P50), micro(l.P90), micro(l.P99), micro(l.P999), micro(l.Max), s.Errors)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	for _, s := range r.Sides {
		if s.LastError != "" {
			fmt.Fprintf(w, "  last error of %s: %s\n", s.Name, s.LastError)
		}
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Figures {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", f.Name, f.text(), f.Target.text())
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func (f Figure) text() string {
	text := count(f.Median)
	if f.Low != f.High {
		text += fmt.Sprintf(" (%s–%s)", count(f.Low), count(f.High))
	}
	return strings.TrimSpace(text + " " + f.Unit)
}

func (t *Target) text() string {
	switch {
	case t == nil:
		return ""
	case t.AtLeast != nil:
		return fmt.Sprintf("target ≥ %s: %s", count(*t.AtLeast), t.met())
	}
	return fmt.Sprintf("target ≤ %s: %s", count(*t.AtMost), t.met())
}

func (t *Target) met() string {
	if t.Met {
		return "met"
	}
	return "missed"
}

// count writes a number with the digits that mean something.
func count(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return grouped(fmt.Sprintf("%.0f", v))
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// grouped sets a comma before every three digits.
func grouped(digits string) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// micro writes microseconds.
func micro(us float64) string {
	switch {
	case us >= 1e6:
		return fmt.Sprintf("%.2f s", us/1e6)
	case us >= 1e4:
		return fmt.Sprintf("%.0f ms", us/1e3)
	case us >= 1e3:
		return fmt.Sprintf("%.1f ms", us/1e3)
	}
	return fmt.Sprintf("%.0f µs", us)
}
