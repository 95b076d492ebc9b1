package config

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// preface opens the document. All else in it comes from the declarations.
const preface = `<!-- Generated from internal/config/config.go by go generate ./internal/config; edit that file. -->

# Configuration

Everything works without configuration. What is set comes from four places; where they differ, the later one wins:

1. the defaults below;
2. a YAML file, named by ` + "`--config FILE` or `FIRN_CONFIG`" + `;
3. environment variables, ` + "`FIRN_`" + ` and the setting's path in capitals: ` + "`hot.max_bytes` is `FIRN_HOT_MAX_BYTES`" + `;
4. flags: ` + "`--hot.max-bytes`" + `.

` + "`firn config`" + ` takes the same flags as ` + "`firn serve`" + ` and prints the result: every setting with its meaning, its value and where
the value came from. Its output is a valid file.

The server does not start with a configuration that it would have to guess about. Unknown keys and variables are errors, as are values out of
range and settings that contradict each other. All of them are reported at once, with file and line. (` + "`FIRN_URL` and `FIRN_ADMIN_URL`" + ` are no settings but
tell commands such as ` + "`firn stream ls`" + ` where a server is.)

- **Sizes** have a unit: ` + "`64MiB`, `2GiB` (steps of 1024), `5GB` (of 1000)" + `; a number alone is bytes, and may be grouped, ` + "`1_000_000`" + `.
- **Durations** have a unit: ` + "`250ms`, `90s`, `1h30m`, `7d`, `2w`" + `; some settings take ` + "`forever`" + `.
- **Lists** are YAML lists; in variables and flags their items are separated by commas, and an empty value is the empty list.
- **Secrets** are never printed. Each can be read from a file: with ` + "`_file`" + ` behind the key, ` + "`_FILE`" + ` behind the
  variable, or ` + "`-file`" + ` behind the flag. As flags they can be given in no other way, since the arguments of a process are no secret.
`

// Document writes docs/configuration.md.
func Document(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString(preface)
	m := readManual()
	for _, sec := range declared().sections {
		if sec.path == "" {
			b.WriteString("\n## Top level\n")
		} else {
			fmt.Fprintf(b, "\n## %s\n\n%s\n", sec.path, m.of(sec.field))
		}
		for _, s := range sec.settings {
			s.document(b, m)
		}
	}
	return b.Flush()
}

func (s setting) document(w io.Writer, m manual) {
	fmt.Fprintf(w, "\n### `%s`\n\n%s\n\n", s.path, m.of(s.field))
	fmt.Fprintf(w, "- Default: %s\n", s.defaultText())
	if bounds := s.rangeText(); bounds != "" {
		fmt.Fprintf(w, "- Values: %s\n", bounds)
	}
	var variables, flags []string
	for _, path := range s.paths() {
		variable, flag := envName(path), "--"+flagName(path)
		if s.secret() {
			variable += "`, `" + envName(path+fileSuffix)
			flag += "-file"
		}
		// An alias may spell the variable like the path does.
		if len(variables) == 0 || variables[0] != variable {
			variables = append(variables, variable)
		}
		flags = append(flags, flag)
	}
	fmt.Fprintf(w, "- Variable: `%s`\n- Flag: `%s`\n", strings.Join(variables, "`, `"), strings.Join(flags, "`, `"))
}

func (s setting) defaultText() string {
	items := s.defaultItems()
	switch {
	case s.list() && len(items) == 0:
		return "empty list"
	case strings.Join(items, "") == "":
		return "not set"
	}
	return "`" + strings.Join(items, "`, `") + "`"
}
