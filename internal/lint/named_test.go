package lint_test

import (
	"os"
	"slices"
	"testing"

	"firn/internal/lint"
)

func TestTestsNamedInDocs(t *testing.T) {
	tree, err := lint.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := tree.NamedTests("docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range broken {
		t.Error(line)
	}
}

func TestNamedTests(t *testing.T) {
	const test = "package x\nfunc TestA() { run(\"case\") }\n"
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"all there", "See `pkg/x.TestA` and `pkg/x.TestA/case`.\n", nil},
		{"other code", "`pkg/x.TestA`, `make unit`, `x.Read`, `TestNowhere`\n", nil},
		{"no such test", "`pkg/x.TestA`\n\n| a | `pkg/x.TestB` |\n", []string{"page.md:3: there is no test pkg/x.TestB"}},
		{"no such subtest", "`pkg/x.TestA/other`\n", []string{"page.md:1: there is no test pkg/x.TestA/other"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := load(t, map[string]string{"page.md": c.text, "pkg/x/x_test.go": test})
			if got, err := tree.NamedTests("page.md"); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	if _, err := load(t, map[string]string{"page.md": "nothing\n", "pkg/x/x_test.go": test}).NamedTests("page.md"); err == nil {
		t.Error("a page that names none passed")
	}
}
