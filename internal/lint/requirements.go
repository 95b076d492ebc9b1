package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Where the titles of tests in JavaScript are. The suite is there only once the tools
// are installed.
const (
	jsTests    = "testdata/js/*.test.mjs"
	suiteTests = "testdata/js/node_modules/@durable-streams/server-conformance-tests/src/index.ts"
)

var (
	// section names a place in the base protocol, its extensions, or the text on
	// bootstrap over two tiers, which has no words of duty and no numbers.
	section = regexp.MustCompile(`^([BX]§\d+(\.\d+)*|S)$`)
	duty    = regexp.MustCompile(`^(client )?(MUST|SHOULD)( NOT)? \S`)
	goTest  = regexp.MustCompile(`^([a-z0-9_/]+)\.((?:Test|Fuzz|Example)\w+)(?:/(.+))?$`)
	jsTitle = regexp.MustCompile("\\btest(?:\\.\\w+)?\\(\\s*`([^`]+)`")
)

// requirementsHead is the first line of every table of requirements.
const requirementsHead = "| section | requirement | firn | shown by |"

// Requirements returns a line for each row of the tables in a page that is not whole:
// what is required, what the server does about it, and the tests that show it, which
// must exist. Tests are named `dir.TestName`, `dir.TestName/subtest`, `js: title` or
// `suite: title`, the last checked only where the suite is installed.
func (t *Tree) Requirements(page string) ([]string, error) {
	text, err := fs.ReadFile(t.fsys, page)
	if err != nil {
		return nil, fmt.Errorf("read the requirements: %w", err)
	}
	tests, err := t.tests()
	if err != nil {
		return nil, err
	}
	var broken []string
	rows, seen := 0, map[string]bool{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || line == requirementsHead || line == "| --- | --- | --- | --- |" {
			continue
		}
		rows++
		report := func(reason string) {
			broken = append(broken, fmt.Sprintf("%s:%d: %s", page, n, reason))
		}
		row := cells(line)
		if len(row) != 4 || row[0] == "" || row[1] == "" || row[2] == "" || row[3] == "" {
			report("a row has four cells, and none is empty")
			continue
		}
		if !section.MatchString(row[0]) {
			report(fmt.Sprintf("%q is no section", row[0]))
		}
		if row[0] != "S" && !duty.MatchString(row[1]) {
			report(fmt.Sprintf("%q does not begin with a duty", row[1]))
		}
		if key := row[0] + row[1]; seen[key] {
			report("a second row for the same requirement")
		} else {
			seen[key] = true
		}
		named, ok := unquote(row[3])
		if !ok {
			report(fmt.Sprintf("%q is no list of tests between backticks", row[3]))
		}
		for ref := range strings.SplitSeq(named, "`, `") {
			if reason := tests.lacks(ref); ok && reason != "" {
				report(reason)
			}
		}
	}
	if rows == 0 {
		return nil, errors.New("no requirements in " + page)
	}
	return broken, nil
}

// unquote takes the outer backticks off a cell.
func unquote(cell string) (string, bool) {
	inner, ok := strings.CutPrefix(cell, "`")
	if !ok {
		return cell, false
	}
	return strings.CutSuffix(inner, "`")
}

// cells splits a row of a table; a bar within a cell is escaped.
func cells(line string) []string {
	line = strings.ReplaceAll(line, `\|`, "\x00")
	line = strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|")
	row := strings.Split(line, "|")
	for i := range row {
		row[i] = strings.TrimSpace(strings.ReplaceAll(row[i], "\x00", "|"))
	}
	return row
}

// testNames are the tests of a tree.
type testNames struct {
	// names has the strings that may be subtests of each test, by package and function.
	names     map[string]map[string]bool
	js, suite map[string]bool
	installed bool // whether the suite is
}

// lacks returns why ref names no test, "" if it does.
func (n testNames) lacks(ref string) string {
	kind, title, ok := strings.Cut(ref, ": ")
	switch {
	case ok && kind == "js":
		if !n.js[title] {
			return fmt.Sprintf("there is no test %q in %s", title, jsTests)
		}
		return ""
	case ok && kind == "suite":
		if n.installed && !n.suite[title] {
			return fmt.Sprintf("the suite has no test %q", title)
		}
		return ""
	}
	m := goTest.FindStringSubmatch(ref)
	if m == nil {
		return fmt.Sprintf("%q names no test", ref)
	}
	subs, ok := n.names[m[1]+"."+m[2]]
	if !ok || m[3] != "" && !hasSubtest(subs, m[3]) {
		return fmt.Sprintf("there is no test %s", ref)
	}
	return ""
}

// hasSubtest reports whether a test has a name, or all parts of a nested one, among
// its strings.
func hasSubtest(strs map[string]bool, name string) bool {
	if strs[name] {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if !strs[part] {
			return false
		}
	}
	return true
}

// tests collects the tests of all packages, of every build tag, and the titles of
// those in JavaScript.
func (t *Tree) tests() (testNames, error) {
	n := testNames{names: map[string]map[string]bool{}, js: map[string]bool{}, suite: map[string]bool{}}
	for _, f := range t.files {
		if strings.HasSuffix(f.path, "_test.go") {
			f.addTests(n.names)
		}
	}
	files, err := fs.Glob(t.fsys, jsTests)
	if err != nil {
		return n, fmt.Errorf("find the tests in JavaScript: %w", err)
	}
	for _, name := range files {
		if err := addTitles(t.fsys, name, n.js); err != nil {
			return n, err
		}
	}
	err = addTitles(t.fsys, suiteTests, n.suite)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	n.installed = err == nil
	return n, nil
}

// addTests adds the test functions of a file, each with the strings in it and in what
// it may share with others of the file: subtests are often rows of a table beside it.
func (f file) addTests(to map[string]map[string]bool) {
	shared := map[string]bool{}
	for _, d := range f.syntax.Decls {
		if testName(d) == "" {
			addStrings(d, shared)
		}
	}
	for _, d := range f.syntax.Decls {
		if name := testName(d); name != "" {
			strs := map[string]bool{}
			for s := range shared {
				strs[s] = true
			}
			addStrings(d, strs)
			to[path.Clean(f.dir)+"."+name] = strs
		}
	}
}

// testName returns the name of a function that go test runs, "" for anything else.
func testName(d ast.Decl) string {
	fn, ok := d.(*ast.FuncDecl)
	if !ok || fn.Recv != nil {
		return ""
	}
	for _, kind := range []string{"Test", "Fuzz", "Example"} {
		if strings.HasPrefix(fn.Name.Name, kind) && fn.Name.Name != "TestMain" {
			return fn.Name.Name
		}
	}
	return ""
}

func addStrings(n ast.Node, to map[string]bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				to[s] = true
			}
		}
		return true
	})
}

func addTitles(fsys fs.FS, name string, to map[string]bool) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return fmt.Errorf("read titles of tests: %w", err)
	}
	for _, m := range jsTitle.FindAllStringSubmatch(string(src), -1) {
		to[m[1]] = true
	}
	return nil
}
