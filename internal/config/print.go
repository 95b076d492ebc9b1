package config

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Print writes a configuration as YAML that [Load] reads back, each setting with
// its manual above it and its origin beside it. Secrets are not shown: their lines
// are comments that say whether they are set.
func Print(w io.Writer, c Config, origins Origins) error {
	b := bufio.NewWriter(w)
	m := readManual()
	for _, sec := range declared().sections {
		indent := ""
		if sec.path != "" {
			indent = "  "
			fmt.Fprintf(b, "\n")
			writeComment(b, "", m.of(sec.field))
			fmt.Fprintf(b, "%s:\n", sec.path)
		}
		for i, s := range sec.settings {
			if i > 0 {
				fmt.Fprintf(b, "\n")
			}
			writeComment(b, indent, m.of(s.field))
			s.print(b, indent, c, origins)
		}
	}
	return b.Flush()
}

func (s setting) print(w io.Writer, indent string, c Config, origins Origins) {
	if bounds := s.rangeText(); bounds != "" {
		fmt.Fprintf(w, "%s# Values: %s.\n", indent, bounds)
	}
	origin := origins.Of(s.path)
	if s.secret() {
		state := "not set"
		if s.in(&c).String() != "" {
			state = "not shown; from " + origin
		}
		fmt.Fprintf(w, "%s# %s: (%s)\n", indent, s.key(), state)
		return
	}
	if origin != "default" {
		origin = "from " + origin
	}
	fmt.Fprintf(w, "%s%s: %s # %s\n", indent, s.key(), s.yaml(c), origin)
}

// yaml is the value in YAML.
func (s setting) yaml(c Config) string {
	items := s.format(s.in(&c))
	for i := range items {
		items[i] = quoteYAML(items[i])
	}
	if s.list() {
		return "[" + strings.Join(items, ", ") + "]"
	}
	return items[0]
}

// quoteYAML leaves plain what cannot be taken for anything else, and puts all
// other text into double quotes.
func quoteYAML(text string) string {
	plain := text != "" && text != "null" && !strings.HasPrefix(text, "-") && !strings.HasSuffix(text, ":") &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./:_-=?+") == ""
	if plain {
		return text
	}
	return strconv.Quote(text)
}

func writeComment(w io.Writer, indent, text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(w, "%s# %s\n", indent, strings.TrimSuffix(line, "\n"))
	}
}
