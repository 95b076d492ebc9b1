// Package lint holds the rules of this repository that no stock linter knows: which
// package may import which, what stands at the top level, and what no Go file may
// contain. Its test applies them to the repository, so that `go test ./...` fails
// where one is broken; nothing is exempt.
//
// It reads source files alone, of all build tags, and never runs the go command.
package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is the prefix of the repository's own import paths.
const module = "firn/"

// Tree is the Go code of a repository.
type Tree struct {
	fsys  fs.FS
	files []file
}

type file struct {
	path    string // from the root
	dir     string // its package, from the root
	test    bool   // of a test, or of a package that serves tests alone
	lines   int
	imports []string
	syntax  *ast.File
	fset    *token.FileSet
}

// Load parses every Go file below the root of fsys, but for dot folders and folders
// of other ecosystems' packages.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{fsys: fsys}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		f, err := parse(fsys, name)
		if err != nil {
			return err
		}
		t.files = append(t.files, f)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the tree: %w", err)
	}
	t.markTestPackages()
	return t, nil
}

func parse(fsys fs.FS, name string) (file, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return file{}, err
	}
	f := file{
		path:  name,
		dir:   path.Dir(name),
		test:  strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(string(src), "\n"),
		fset:  token.NewFileSet(),
	}
	f.syntax, err = parser.ParseFile(f.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		f.imports = append(f.imports, p)
	}
	return f, nil
}

// markTestPackages counts the files of each package that imports "testing" outside
// its own tests as test code: such a package exists for the tests of others.
func (t *Tree) markTestPackages() {
	for _, dir := range t.testPackages() {
		for i := range t.files {
			if t.files[i].dir == dir {
				t.files[i].test = true
			}
		}
	}
}

func (t *Tree) testPackages() []string {
	var dirs []string
	for _, f := range t.files {
		if !strings.HasSuffix(f.path, "_test.go") && slices.Contains(f.imports, "testing") && !slices.Contains(dirs, f.dir) {
			dirs = append(dirs, f.dir)
		}
	}
	return dirs
}

// within reports whether dir is one of the trees, or lies below one.
func within(dir string, trees ...string) bool {
	return slices.ContainsFunc(trees, func(tree string) bool {
		return dir == tree || strings.HasPrefix(dir, tree+"/")
	})
}
