package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// manual is the comments of the fields in config.go, by "Struct.Field". The
// binary carries that file's text, because comments are not to be had otherwise,
// and a second copy of them would go stale.
type manual map[string]string

// readManual reads them. It takes about a millisecond, which is why [Load] does
// without.
func readManual() manual {
	f, err := parser.ParseFile(token.NewFileSet(), "config.go", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		panic("config: " + err.Error())
	}
	m := make(manual)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		if st, ok := spec.Type.(*ast.StructType); ok {
			for _, field := range st.Fields.List {
				m[spec.Name.Name+"."+field.Names[0].Name] = strings.TrimSpace(field.Doc.Text())
			}
		}
		return false
	})
	return m
}

// of returns the comment of a field, its lines as in the source.
func (m manual) of(field string) string {
	text := m[field]
	if text == "" {
		panic("config: " + field + " has no comment")
	}
	return text
}

// firstSentence is the beginning of a comment in one line, without its full stop.
func firstSentence(doc string) string {
	line := strings.Join(strings.Fields(doc), " ")
	if i := strings.Index(line, ". "); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSuffix(line, ".")
}
