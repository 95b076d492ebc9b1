package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
)

// manual is the comments of the fields in config.go, by struct and field name. The
// binary carries that file's text, because comments are not to be had otherwise,
// and a second copy of them would go stale.
type manual map[string]string

// readManual panics if the file does not parse or a comment is missing: either is
// a bug that every test of the package finds.
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

// doc is the comment of a field.
func (m manual) doc(owner reflect.Type, f reflect.StructField) string {
	text := m[owner.Name()+"."+f.Name]
	if text == "" {
		panic("config: " + owner.Name() + "." + f.Name + " has no comment")
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
