package lint

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// quoted is what stands between two backticks of a line.
var quoted = regexp.MustCompile("`([^`]+)`")

// NamedTests returns a line for each test that a page names, as `dir.TestName` or
// `dir.TestName/subtest` between backticks, and that does not exist.
func (t *Tree) NamedTests(page string) ([]string, error) {
	text, err := fs.ReadFile(t.fsys, page)
	if err != nil {
		return nil, fmt.Errorf("read the names of tests: %w", err)
	}
	tests, err := t.tests()
	if err != nil {
		return nil, err
	}
	var broken []string
	n, named := 0, 0
	for line := range strings.Lines(string(text)) {
		n++
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if !goTest.MatchString(m[1]) {
				continue
			}
			named++
			if reason := tests.lacks(m[1]); reason != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s", page, n, reason))
			}
		}
	}
	if named == 0 {
		return nil, fmt.Errorf("%s names no test", page)
	}
	return broken, nil
}
