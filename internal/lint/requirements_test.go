package lint_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"firn/internal/lint"
)

const page = "docs/requirements.md"

func TestRequirementsOfRepository(t *testing.T) {
	tree, err := lint.Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	broken, err := tree.Requirements(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range broken {
		t.Error(line)
	}
}

func TestRequirements(t *testing.T) {
	const (
		suite = "testdata/js/node_modules/@durable-streams/server-conformance-tests/src/index.ts"
		head  = "| section | requirement | firn | shown by |\n| --- | --- | --- | --- |\n"
		whole = "| B§5.2 | MUST refuse an empty body | 400 | "
	)
	for _, c := range []struct {
		name, row string
		want      string // "" for none
	}{
		{"test", whole + "`pkg/x.TestA` |", ""},
		{"test behind a tag", whole + "`pkg/x.TestTagged` |", ""},
		{"fuzz test", whole + "`pkg/x.FuzzA` |", ""},
		{"subtest", whole + "`pkg/x.TestA/of its own` |", ""},
		{"subtest of the table beside it", whole + "`pkg/x.TestA/of the table` |", ""},
		{"nested subtest", whole + "`pkg/x.TestA/of the table/of its own` |", ""},
		{"several", whole + "`pkg/x.TestA`, `pkg/x.TestTagged`, `js: ends, with more`, `suite: later` |", ""},
		{"bar in a cell", "| B§5.2 | MUST take a\\|b | yes | `pkg/x.TestA` |", ""},
		{"client", "| B§8 | client SHOULD NOT guess | yes | `pkg/x.TestA` |", ""},
		{"no words of duty", "| S | one view | yes | `pkg/x.TestA` |", ""},

		{"no such test", whole + "`pkg/x.TestB` |", "there is no test pkg/x.TestB"},
		{"no such package", whole + "`pkg/y.TestA` |", "there is no test pkg/y.TestA"},
		{"not of a test file", whole + "`pkg/x.TestInCode` |", "there is no test"},
		{"main of tests", whole + "`pkg/x.TestMain` |", "there is no test"},
		{"no such subtest", whole + "`pkg/x.TestA/other` |", "there is no test pkg/x.TestA/other"},
		{"subtest of another", whole + "`pkg/x.TestTagged/of its own` |", "there is no test"},
		{"no such title", whole + "`js: starts` |", "there is no test \"starts\""},
		{"no such title of the suite", whole + "`suite: starts` |", "the suite has no test \"starts\""},
		{"second is none", whole + "`pkg/x.TestA`, `pkg/x.TestB` |", "TestB"},
		{"words", whole + "see the code |", "between backticks"},
		{"words between backticks", whole + "`see the code` |", "names no test"},
		{"words among tests", whole + "`pkg/x.TestA` and `pkg/x.TestTagged` |", "names no test"},
		{"no test", whole + " |", "none is empty"},
		{"no answer", "| B§5.2 | MUST refuse | | `pkg/x.TestA` |", "none is empty"},
		{"three cells", "| B§5.2 | MUST refuse | `pkg/x.TestA` |", "four cells"},
		{"no section", "| 5.2 | MUST refuse | yes | `pkg/x.TestA` |", "no section"},
		{"no duty", "| X§5.2 | refuses | yes | `pkg/x.TestA` |", "does not begin with a duty"},
		{"twice", whole + "`pkg/x.TestA` |\n" + whole + "`pkg/x.TestA` |", "a second row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := load(t, map[string]string{
				page:                     head + c.row + "\n",
				"pkg/x/x.go":             "package x\nfunc TestInCode() {}\n",
				"pkg/x/x_test.go":        "package x\nvar cases = []string{\"of the table\"}\nfunc TestA() { run(\"of its own\") }\nfunc FuzzA() {}\nfunc TestMain() {}\n",
				"pkg/x/tag_test.go":      "//go:build integration\n\npackage x\nfunc TestTagged() {}\n",
				"testdata/js/a.mjs":      "test(`starts`, async () => {})\n",
				suite:                    "test.concurrent(\n  `later`, () => {})\n",
				"testdata/js/a.test.mjs": "test(`ends, with more`, async () => {})\n",
			})
			got, err := tree.Requirements(page)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}

	t.Run("suite is not installed", func(t *testing.T) {
		tree := load(t, map[string]string{page: head + whole + "`suite: anything` |\n"})
		if got, err := tree.Requirements(page); err != nil || len(got) != 0 {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("empty page", func(t *testing.T) {
		tree, err := lint.Load(fstest.MapFS{page: {Data: []byte(head)}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Requirements(page); err == nil {
			t.Error("a page without a requirement passed")
		}
	})
}
