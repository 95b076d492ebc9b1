package config

import (
	"strings"
	"testing"
)

// TestDeclarations holds what the declarations promise to each other: names are
// unique in every source, and numbers have bounds.
func TestDeclarations(t *testing.T) {
	variables, flags := map[string]string{envConfig: "--config"}, map[string]string{"config": "--config"}
	for path, s := range declared().spellings() {
		for _, names := range []struct {
			seen map[string]string
			name string
		}{{variables, envName(path)}, {flags, flagName(path)}} {
			if other := names.seen[names.name]; other != "" && other != s.target.path {
				t.Errorf("%s names both %s and %s", names.name, other, s.target.path)
			}
			names.seen[names.name] = s.target.path
		}
		if foreign(envName(path)) {
			t.Errorf("%s has another meaning", envName(path))
		}
	}
	m := readManual()
	for _, s := range declared().settings() {
		if s.tag.Get("key") == "" {
			t.Errorf("%v has no key", s.index)
		}
		if doc := m.of(s.field); strings.Contains(doc, "\n\n") || strings.Contains(doc, "${") {
			t.Errorf("the comment of %s has two paragraphs, or a variable of kong", s.path)
		}
		if _, enum := s.tag.Lookup("enum"); enum || !s.in(&Config{}).CanInt() {
			continue
		}
		_, least := s.bound("min")
		_, most := s.bound("max")
		if !least || !most {
			t.Errorf("%s is not bounded", s.path)
		}
	}
}
