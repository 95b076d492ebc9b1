package lint

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// maxLines is where a file has stopped being one concept.
const maxLines = 600

// vague are package names that say nothing of what they hold.
var vague = []string{"util", "utils", "common", "types", "helpers", "impl", "manager", "misc"}

// Code returns a line for each Go file that is too long, hides work in init, silences
// a linter, bears a vague package name, or, in tests, sleeps or skips.
func (t *Tree) Code() []string {
	var broken []string
	for _, f := range t.files {
		report := func(n ast.Node, reason string) {
			broken = append(broken, fmt.Sprintf("%s:%d: %s", f.path, f.fset.Position(n.Pos()).Line, reason))
		}
		if f.lines > maxLines {
			broken = append(broken, fmt.Sprintf("%s: has %d lines, more than %d", f.path, f.lines, maxLines))
		}
		if slices.Contains(vague, path.Base(f.dir)) {
			report(f.syntax.Name, "the package's name says nothing of what it holds")
		}
		for _, group := range f.syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//lint:") || strings.HasPrefix(c.Text, "//nolint") {
					report(c, "silences a linter")
				}
			}
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				report(fn, "does work in init")
			}
		}
		if f.test {
			f.waits(report)
		}
	}
	return broken
}

// waits reports where a test sleeps or skips. Sleep within a call of synctest.Test is
// that bubble's own time, which takes none.
func (f file) waits(report func(ast.Node, string)) {
	clock, bubble := f.nameOf("time"), f.nameOf("testing/synctest")
	var inspect func(node ast.Node, real bool)
	inspect = func(node ast.Node, real bool) {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if real && bubble != "" && selects(n.Fun, "Test", bubble) {
					for _, arg := range n.Args {
						inspect(arg, false)
					}
					return false
				}
				if selects(n.Fun, "Skip", testers...) || selects(n.Fun, "Skipf", testers...) || selects(n.Fun, "SkipNow", testers...) {
					report(n, "a test skips: make it run, or put it behind a build tag")
				}
			case *ast.SelectorExpr:
				if real && clock != "" && selects(n, "Sleep", clock) {
					report(n, "a test sleeps: wait for the event itself, or give the code a clock")
				}
			}
			return true
		})
	}
	inspect(f.syntax, true)
}

// testers are what a test, benchmark, fuzz test or any of them is called.
var testers = []string{"t", "b", "f", "tb"}

// selects reports whether e is x.name with x among the given identifiers.
func selects(e ast.Expr, name string, among ...string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && slices.Contains(among, x.Name)
}

// nameOf returns what an imported package is called in the file, "" if it is not imported.
func (f file) nameOf(pkg string) string {
	for i, p := range f.imports {
		if p == pkg {
			if name := f.syntax.Imports[i].Name; name != nil {
				return name.Name
			}
			return path.Base(pkg)
		}
	}
	return ""
}
