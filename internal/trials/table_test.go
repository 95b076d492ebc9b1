package trials_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// areas are the trials of this package, and how many there are of each kind.
var areas = map[string]int{
	"ID": 9, "CR": 6, "PR": 4, "JS": 5, "CT": 3, "RD": 6, "LV": 11, "TL": 7, "FK": 5, "SN": 8, "BS": 7, "HT": 7, "SC": 6, "CM": 7, "GC": 5,
	"DU": 9, "CS": 7, "S3": 5,
}

var (
	trialRow = regexp.MustCompile(`^\| ([A-Z][A-Z0-9])-([0-9a-f]{3}) \| .+ \| (.*) \|$`)
	testName = regexp.MustCompile("^`([a-z0-9/]+)\\.(Test[A-Za-z0-9_]+)(?:/([A-Z0-9a-f-]+))?`$")
	trialID  = regexp.MustCompile(`^[A-Z][A-Z0-9]-[0-9a-f]{3}$`)
)

// TestTable holds docs/testing.md to the source: the tests that it names exist, and it
// names all that are here.
func TestTable(t *testing.T) {
	root := os.DirFS("../..")
	page, err := fs.ReadFile(root, "docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]testsOf{}
	seen, found := map[string]bool{}, map[string]int{}
	named := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		row := trialRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		id := row[1] + "-" + row[2]
		if seen[id] {
			t.Errorf("%s has two rows", id)
		}
		seen[id] = true
		found[row[1]]++
		for ref := range strings.SplitSeq(row[3], ", ") {
			r := testName.FindStringSubmatch(ref)
			if r == nil {
				t.Errorf("%s: %s names no test", id, ref)
				continue
			}
			dir, test, sub := r[1], r[2], r[3]
			if packages[dir] == nil {
				packages[dir] = readTests(t, root, dir)
			}
			subs, ok := packages[dir][test]
			if !ok || sub != "" && !subs[sub] {
				t.Errorf("%s: there is no test %s", id, ref)
			}
			if dir == "internal/trials" && sub != id {
				t.Errorf("%s: is shown by %s", id, ref)
			}
			named[test+"/"+sub] = true
		}
	}
	for area, n := range areas {
		if found[area] != n {
			t.Errorf("%d rows of %s, want %d", found[area], area, n)
		}
	}
	for test, subs := range readTests(t, root, "internal/trials") {
		for sub := range subs {
			if !named[test+"/"+sub] {
				t.Errorf("%s/%s is not in the table", test, sub)
			}
		}
	}
}

// testsOf are the test functions of a package, and the ids of trials that each has as
// subtests.
type testsOf map[string]map[string]bool

func readTests(t *testing.T, root fs.FS, dir string) testsOf {
	t.Helper()
	files, err := fs.Glob(root, path.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOf{}
	for _, name := range files {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = subtests(fn)
			}
		}
	}
	return tests
}

// subtests returns the ids with which a function calls Run.
func subtests(fn *ast.FuncDecl) map[string]bool {
	ids := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		lit, isLit := call.Args[0].(*ast.BasicLit)
		if !ok || !isLit || sel.Sel.Name != "Run" {
			return true
		}
		if id, err := strconv.Unquote(lit.Value); err == nil && trialID.MatchString(id) {
			ids[id] = true
		}
		return true
	})
	return ids
}
