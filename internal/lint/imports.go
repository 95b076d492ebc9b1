package lint

import (
	"fmt"
	"strings"
)

// layer says what the packages of a part of the repository may not import of its
// other parts. A part is a package and all below it, but for those below that have a
// layer of their own.
type layer struct {
	part  string
	never []string
}

// layers follow cmd → internal/api → tier → {tier/hot, tier/cold} → pkg, with
// tier/cold → internal/blob, compactor → {tier/hot, tier/cold}, and
// internal/api → internal/subscribe → tier/hot.
var layers = []layer{
	{"pkg/stream", []string{"pkg/segment", "pkg/client", "cmd", "internal", "tier", "compactor"}},
	{"pkg/segment", []string{"pkg/client", "cmd", "internal", "tier", "compactor"}},
	{"pkg", []string{"cmd", "internal", "tier", "compactor"}},
	{"internal/blob", []string{"pkg", "cmd", "internal/api", "tier", "compactor"}},
	{"internal/subscribe", []string{"cmd", "internal/api", "internal/blob", "tier", "compactor"}},
	{"internal/backup", []string{"cmd", "internal/api", "tier", "compactor"}},
	{"internal/api", []string{"cmd", "internal/blob", "tier/hot", "tier/cold", "compactor"}},
	{"tier/hot", []string{"cmd", "internal/api", "internal/blob", "tier", "compactor"}},
	{"tier/cold", []string{"cmd", "internal/api", "tier", "compactor"}},
	{"tier", []string{"cmd", "internal/api", "compactor"}},
	{"compactor", []string{"cmd", "internal/api", "tier"}},
}

// allowed are the exceptions to layers: an ancestor is barred, this child is not.
var allowed = map[string][]string{
	"compactor":          {"tier/hot", "tier/cold"},
	"internal/backup":    {"tier/hot", "tier/cold"},
	"internal/subscribe": {"tier/hot"},
}

// fence keeps a dependency within a few parts of the repository.
type fence struct {
	dependency string
	parts      []string
	// tests: test code may use it anywhere.
	tests bool
}

var fences = []fence{
	{"github.com/cockroachdb/pebble", []string{"tier/hot", "internal/verify", "internal/tiertest", "internal/bench/limit"}, false},
	{"github.com/aws", []string{"internal/blob/s3"}, false},
	{"net/http", []string{"cmd", "internal/api", "internal/admin", "internal/blob/s3", "internal/subscribe/webhook", "internal/bench", "pkg/client"}, true},
}

// Imports returns a line for each import that breaks a rule.
func (t *Tree) Imports() []string {
	var broken []string
	tests := t.testPackages()
	for _, f := range t.files {
		for _, p := range f.imports {
			own, ours := strings.CutPrefix(p, module)
			switch {
			case !ours && fenced(f, p):
				broken = append(broken, fmt.Sprintf("%s: imports %s, which is kept to a few packages", f.path, p))
			case ours && !f.test && barred(f.dir, own):
				broken = append(broken, fmt.Sprintf("%s: imports %s, against the direction of the layers", f.path, own))
			case ours && !f.test && within(own, tests...):
				broken = append(broken, fmt.Sprintf("%s: imports %s, which is for tests", f.path, own))
			}
		}
	}
	return broken
}

func fenced(f file, dependency string) bool {
	for _, fence := range fences {
		if within(dependency, fence.dependency) && !within(f.dir, fence.parts...) {
			return !fence.tests || !f.test
		}
	}
	return false
}

// barred reports whether the package dir may not import the package own. Packages
// of one part may import one another.
func barred(dir, own string) bool {
	for _, l := range layers { // the more special ones stand first
		if !within(dir, l.part) {
			continue
		}
		if within(own, allowed[l.part]...) || within(own, l.part) && partOf(own) == l.part {
			return false
		}
		return within(own, l.never...)
	}
	return false
}

// partOf returns the part whose layer a package obeys, or "".
func partOf(dir string) string {
	for _, l := range layers {
		if within(dir, l.part) {
			return l.part
		}
	}
	return ""
}
