package glob_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"firn/internal/subscribe/glob"
)

func parse(t testing.TB, s string) glob.Pattern {
	t.Helper()
	p, err := glob.Parse(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return p
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern string
		prefix  string
		yes, no []string
	}{
		{"events/a", "events/a", []string{"events/a"}, []string{"events", "events/a/b", "events/b", "Events/a"}},
		{"events/*", "events/", []string{"events/a", "events/*"}, []string{"events", "events/a/b", "event/a"}},
		{"*", "", []string{"a"}, []string{"a/b"}},
		{"*/b", "", []string{"a/b"}, []string{"a", "b", "a/b/c"}},
		{"**", "", []string{"a", "a/b", "a/b/c"}, nil},
		{"a/**", "a", []string{"a", "a/b", "a/b/c"}, []string{"ab", "b/a"}},
		{"**/z", "", []string{"z", "a/z", "a/b/z", "z/z"}, []string{"a", "z/a"}},
		{"a/**/z", "a", []string{"a/z", "a/b/z", "a/z/z"}, []string{"a", "z", "a/z/b"}},
		{"a/**/*", "a", []string{"a/b", "a/b/c"}, []string{"a"}},
		{"**/**", "", []string{"a", "a/b"}, nil},
		{"a/**/b/**/c", "a", []string{"a/b/c", "a/x/b/y/z/c", "a/b/b/c"}, []string{"a/c", "a/b", "a/c/b"}},
	} {
		p := parse(t, c.pattern)
		if got := p.Prefix(); got != c.prefix {
			t.Errorf("prefix of %q is %q, want %q", c.pattern, got, c.prefix)
		}
		for _, path := range c.yes {
			if !p.Match(path) {
				t.Errorf("%q does not match %q", c.pattern, path)
			}
		}
		for _, path := range c.no {
			if p.Match(path) {
				t.Errorf("%q matches %q", c.pattern, path)
			}
		}
	}
	if (glob.Pattern{}).Match("") {
		t.Error("no pattern matches something")
	}
}

func TestParseBounds(t *testing.T) {
	segments := func(n int, s string) string { return strings.TrimSuffix(strings.Repeat(s+"/", n), "/") }
	for _, s := range []string{
		strings.Repeat("a", glob.MaxBytes), segments(glob.MaxSegments, "*"), segments(glob.MaxDeep, "**"), "ä/ü",
	} {
		parse(t, s)
	}
	for _, s := range []string{
		"", strings.Repeat("a", glob.MaxBytes+1), segments(glob.MaxSegments+1, "*"), segments(glob.MaxDeep+1, "**"),
		"/a", "a/", "a//b", "a*", "*a", "***", "a/b*/c", "a\x00", "../a", "a\xff",
	} {
		if _, err := glob.Parse(s); !errors.Is(err, glob.ErrPattern) {
			t.Errorf("%q: %v, want ErrPattern", s, err)
		}
	}
}

// TestIndexAgreesWithMatch adds and removes random patterns and compares what an index
// finds with each pattern's own opinion.
func TestIndexAgreesWithMatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(words []string) string {
		s := make([]string, 1+r.IntN(4))
		for i := range s {
			s[i] = words[r.IntN(len(words))]
		}
		return strings.Join(s, "/")
	}
	var x glob.Index[int]
	live := make(map[int]glob.Pattern)
	matched := 0
	for i := range 2000 {
		if r.IntN(3) == 0 {
			for v, p := range live {
				x.Remove(p, v)
				delete(live, v)
				break
			}
		} else {
			live[i] = parse(t, random([]string{"a", "b", "*", "**"}))
			x.Add(live[i], i)
		}
		path := random([]string{"a", "b", "c"})
		var got, want []int
		x.Match(path, func(v int) { got = append(got, v) })
		for v, p := range live {
			if p.Match(path) {
				want = append(want, v)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("step %d: %q matches %v, want %v", i, path, got, want)
		}
		matched += len(want)
	}
	if matched == 0 {
		t.Fatal("nothing ever matched")
	}
}

// BenchmarkIndexMiss looks up a path that none of many patterns matches: patterns that
// lie elsewhere, that share the path's way to the last segment, and the worst there are,
// each of which goes its own part of the way.
func BenchmarkIndexMiss(b *testing.B) {
	for _, bb := range []struct {
		name    string
		n       int
		pattern func(i int) string
	}{
		{"one", 1, func(i int) string { return fmt.Sprintf("tenant-%d/**/events/*", i) }},
		{"elsewhere", 10_000, func(i int) string {
			return fmt.Sprintf([]string{"tenant-%d/**/events/*", "**/deep-%d"}[i%2], i)
		}},
		{"prefixes", 10_000, func(i int) string {
			return fmt.Sprintf([]string{"plain/*/c-%d", "**/x-%d", "plain/**/y-%d", "*/*/z-%d"}[i%4], i)
		}},
		{"worst", 10_000, func(i int) string {
			var p strings.Builder
			for bit := range 13 {
				p.WriteString([]string{"*/", "a/"}[i>>bit&1])
			}
			return p.String() + fmt.Sprint("end-", i)
		}},
	} {
		b.Run("patterns="+bb.name, func(b *testing.B) {
			var x glob.Index[int]
			for i := range bb.n {
				x.Add(parse(b, bb.pattern(i)), i)
			}
			path := "plain/events/one"
			if bb.name == "worst" {
				path = strings.Repeat("a/", 13) + "one"
			}
			b.ReportAllocs()
			for b.Loop() {
				x.Match(path, func(int) { b.Fatal("matched") })
			}
		})
	}
}
