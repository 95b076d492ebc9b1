package lint_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"firn/internal/lint"
)

func TestRepository(t *testing.T) {
	root := os.DirFS("../..")
	if _, err := os.Stat("../../go.mod"); err != nil {
		t.Fatal(err)
	}
	tree, err := lint.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	broken, err := tree.Layout()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Concat(tree.Imports(), tree.Code(), broken) {
		t.Error(line)
	}
}

// load makes a tree of the given files, named by path.
func load(t *testing.T, files map[string]string) *lint.Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, src := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	tree, err := lint.Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestImports(t *testing.T) {
	for _, c := range []struct {
		file, imports string
		legal         bool
	}{
		{"cmd/firn/main.go", "firn/internal/api", true},
		{"cmd/firn/main.go", "firn/compactor", true},
		{"internal/api/read.go", "firn/tier", true},
		{"internal/api/read.go", "firn/pkg/stream", true},
		{"internal/api/read.go", "firn/tier/hot", false},
		{"internal/api/read.go", "firn/tier/cold", false},
		{"internal/api/read.go", "firn/internal/blob", false},
		{"internal/api/sub/x.go", "firn/internal/api", true},
		{"internal/api/sub/x.go", "firn/compactor", false},
		{"internal/api/x.go", "firn/internal/subscribe", true},
		{"internal/subscribe/x.go", "firn/tier/hot", true},
		{"internal/subscribe/x.go", "firn/internal/subscribe/webhook", true},
		{"internal/subscribe/x.go", "firn/tier", false},
		{"internal/subscribe/x.go", "firn/tier/cold", false},
		{"internal/subscribe/x.go", "firn/internal/api", false},
		{"internal/subscribe/x.go", "net/http", false},
		{"internal/subscribe/webhook/x.go", "net/http", true},
		{"tier/store.go", "firn/tier/hot", true},
		{"tier/store.go", "firn/tier/cold", true},
		{"tier/store.go", "firn/compactor", false},
		{"tier/store.go", "firn/internal/api", false},
		{"tier/hot/store.go", "firn/pkg/stream", true},
		{"tier/hot/store.go", "firn/tier/hot/key", true},
		{"tier/hot/store.go", "firn/tier/cold", false},
		{"tier/hot/store.go", "firn/tier", false},
		{"tier/hot/store.go", "firn/internal/blob", false},
		{"tier/cold/put.go", "firn/internal/blob", true},
		{"tier/cold/put.go", "firn/tier/hot", false},
		{"tier/cold/put.go", "firn/tier", false},
		{"tier/cold/put_test.go", "firn/tier", true},
		{"compactor/seal.go", "firn/tier/hot", true},
		{"internal/backup/runner.go", "firn/tier/hot", true},
		{"internal/backup/runner.go", "firn/tier", false},
		{"compactor/seal.go", "firn/tier/cold", true},
		{"compactor/seal.go", "firn/tier", false},
		{"compactor/seal.go", "firn/internal/api", false},
		{"pkg/stream/x.go", "firn/pkg/segment", false},
		{"pkg/stream/x.go", "firn/internal/config", false},
		{"pkg/segment/x.go", "firn/pkg/stream", true},
		{"pkg/segment/x.go", "firn/pkg/client", false},
		{"pkg/client/x.go", "firn/pkg/segment", true},
		{"pkg/client/x.go", "firn/tier", false},
		{"internal/blob/s3/x.go", "firn/internal/blob", true},
		{"internal/blob/s3/x.go", "firn/pkg/stream", false},
		{"internal/blob/s3/x.go", "firn/tier/cold", false},

		{"tier/hot/x.go", "github.com/cockroachdb/pebble/v2", true},
		{"tier/hot/x.go", "github.com/cockroachdb/pebble/v2/vfs", true},
		{"internal/verify/x.go", "github.com/cockroachdb/pebble/v2", true},
		{"internal/tiertest/x.go", "github.com/cockroachdb/pebble/v2", true},
		{"tier/x.go", "github.com/cockroachdb/pebble/v2", false},
		{"compactor/x_test.go", "github.com/cockroachdb/pebble/v2/vfs", false},
		{"internal/blob/s3/x.go", "github.com/aws/aws-sdk-go-v2/service/s3", true},
		{"internal/blob/s3/x.go", "github.com/aws/smithy-go", true},
		{"internal/blob/x.go", "github.com/aws/smithy-go", false},
		{"cmd/firn/x.go", "github.com/aws/aws-sdk-go-v2/config", false},
		{"cmd/firn/x.go", "net/http", true},
		{"internal/admin/x.go", "net/http/pprof", true},
		{"internal/blob/s3/x.go", "net/http", true},
		{"pkg/client/x.go", "net/http", true},
		{"tier/x.go", "net/http", false},
		{"tier/hot/x.go", "net/http/httptest", false},
		{"tier/hot/x_test.go", "net/http/httptest", true},
		{"internal/cmdline/x.go", "net/http", false},
	} {
		tree := load(t, map[string]string{c.file: "package x\nimport _ \"" + c.imports + "\"\n"})
		if got := tree.Imports(); (len(got) == 0) != c.legal {
			t.Errorf("%s imports %s: legal %v, got %q", c.file, c.imports, c.legal, got)
		}
	}
}

func TestTestPackages(t *testing.T) {
	files := map[string]string{
		"internal/tiertest/x.go": "package tiertest\nimport (_ \"testing\"; _ \"net/http\"; _ \"firn/tier\")\n",
		"tier/x_test.go":         "package tier_test\nimport _ \"firn/internal/tiertest\"\n",
	}
	if got := load(t, files).Imports(); len(got) != 0 {
		t.Errorf("a test may use a package for tests: got %q", got)
	}
	files["cmd/firn/x.go"] = "package main\nimport _ \"firn/internal/tiertest\"\n"
	if got := load(t, files).Imports(); len(got) != 1 || !strings.Contains(got[0], "for tests") {
		t.Errorf("a program may not: got %q", got)
	}
}

func TestCode(t *testing.T) {
	const sleeps = "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"
	for _, c := range []struct {
		name, file, src string
		want            string // "" for none
	}{
		{"as long as may be", "pkg/x/x.go", "package x\n" + strings.Repeat("\n", 599), ""},
		{"too long", "pkg/x/x.go", "package x\n" + strings.Repeat("\n", 600), "pkg/x/x.go: has 601 lines"},
		{"too long a test", "pkg/x/x_test.go", "package x\n" + strings.Repeat("\n", 600), "601 lines"},
		{"sleep in a test", "pkg/x/x_test.go", sleeps, "pkg/x/x_test.go:3: a test sleeps"},
		{"sleep under another name", "pkg/x/x_test.go", "package x\nimport clock \"time\"\nvar f = clock.Sleep\n", "a test sleeps"},
		{"sleep in a package for tests", "internal/xtest/x.go", "package x\nimport (\"time\"; _ \"testing\")\nfunc f() { time.Sleep(1) }\n", "a test sleeps"},
		{"sleep elsewhere", "pkg/x/x.go", sleeps, ""},
		{"another Sleep", "pkg/x/x_test.go", "package x\nfunc f() { clock.Sleep(1) }\n", ""},
		{"sleep in a bubble", "pkg/x/x_test.go", "package x\nimport (\"testing/synctest\"; \"time\")\nfunc f() { synctest.Test(t, func() { time.Sleep(1) }) }\n", ""},
		{"sleep beside a bubble", "pkg/x/x_test.go", "package x\nimport (\"testing/synctest\"; \"time\")\nfunc f() { synctest.Test(t, g); time.Sleep(1) }\n", "a test sleeps"},
		{"skip in a bubble", "pkg/x/x_test.go", "package x\nimport \"testing/synctest\"\nfunc f() { synctest.Test(t, func() { t.Skip() }) }\n", "a test skips"},
		{"skip", "pkg/x/x_test.go", "package x\nfunc f() { t.Skip() }\n", "pkg/x/x_test.go:2: a test skips"},
		{"skip with a text", "pkg/x/x_test.go", "package x\nfunc f() { b.Skipf(\"\") }\n", "a test skips"},
		{"skip now", "pkg/x/x_test.go", "package x\nfunc f() { t.SkipNow() }\n", "a test skips"},
		{"another Skip", "pkg/x/x_test.go", "package x\nfunc f() { decoder.Skip(); _ = t.Skip }\n", ""},
		{"init", "pkg/x/x.go", "package x\nfunc init() {}\n", "pkg/x/x.go:2: does work in init"},
		{"method init", "pkg/x/x.go", "package x\ntype T struct{}\nfunc (T) init() {}\n", ""},
		{"vague name", "internal/util/x.go", "package util\n", "says nothing"},
		{"silenced linter", "pkg/x/x.go", "package x\n\n//lint:ignore U1000 unused\nfunc f() {}\n", "pkg/x/x.go:3: silences"},
		{"silenced linters", "pkg/x/x.go", "package x\n\nfunc f() {} //nolint:errcheck\n", "silences"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := load(t, map[string]string{c.file: c.src}).Code()
			if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLayout(t *testing.T) {
	tree := load(t, map[string]string{
		"cmd/firn/main.go": "package main\n", ".github/x.yml": "", "go.mod": "", "README.md": "",
		"scripts/x.sh": "", "notes.txt": "",
		"scripts/node_modules/x/x.go": "not Go", ".cache/x.go": "not Go",
	})
	got, err := tree.Layout()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"notes.txt: does not belong at the top level", "scripts: does not belong at the top level"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLoadRefusesWhatIsNotGo(t *testing.T) {
	if _, err := lint.Load(fstest.MapFS{"pkg/x/x.go": {Data: []byte("not Go")}}); err == nil {
		t.Error("a file that cannot be parsed was passed over")
	}
}
