package lint

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// topLevel is all that stands at the root, beside names that begin with a dot. The
// last two are what the build and a first start leave there.
var topLevel = []string{
	"cmd", "pkg", "internal", "tier", "compactor", "docs", "deploy", "testdata",
	"go.mod", "go.sum", "Makefile", "README.md", "LICENSE",
	"firn", "firn-data",
}

// Layout returns a line for each thing at the top level that does not belong there.
func (t *Tree) Layout() ([]string, error) {
	entries, err := fs.ReadDir(t.fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read the top level: %w", err)
	}
	var broken []string
	for _, e := range entries {
		if name := e.Name(); !strings.HasPrefix(name, ".") && !slices.Contains(topLevel, name) {
			broken = append(broken, fmt.Sprintf("%s: does not belong at the top level", name))
		}
	}
	return broken, nil
}
