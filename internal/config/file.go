package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// file turns a YAML file into assignments. It reads the syntax tree itself, rather
// than decoding into [Config], because it needs the line of each value, the text as
// it was written (10m and 1_000 mean nothing to YAML), and all errors at once.
func (l *loader) file(name string) []assignment {
	data, err := l.readFile(name)
	if err != nil {
		l.refuse("", "", fmt.Sprintf("read the configuration file: %v", err))
		return nil
	}
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			l.refuse(fmt.Sprintf("%s:%d", name, at.GetToken().Position.Line), "", at.GetMessage())
		} else {
			l.refuse(name, "", err.Error())
		}
		return nil
	}
	r := &fileReader{loader: l, name: name, sections: make(map[string]bool)}
	for _, s := range declared().sections {
		r.sections[s.path] = true
	}
	r.document(tree)
	return r.source
}

// fileReader walks the syntax tree of one file.
type fileReader struct {
	*loader
	name     string
	sections map[string]bool
	source   []assignment
}

func (r *fileReader) refuseAt(n ast.Node, path, message string) {
	r.refuse(r.origin(n), path, message)
}

func (r *fileReader) origin(n ast.Node) string {
	return fmt.Sprintf("%s:%d", r.name, n.GetToken().Position.Line)
}

func (r *fileReader) document(tree *ast.File) {
	var bodies []ast.Node
	for _, d := range tree.Docs {
		if d.Body != nil && d.Body.Type() != ast.NullType && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	if len(bodies) > 1 {
		r.refuseAt(bodies[1], "", "a second document begins here: put all settings into one")
		return
	}
	for _, body := range bodies {
		m, ok := body.(*ast.MappingNode)
		if !ok {
			r.refuseAt(body, "", "this is not a list of settings: write lines like listen: 127.0.0.1:4437")
			return
		}
		r.mapping(m, "")
	}
}

func (r *fileReader) mapping(m *ast.MappingNode, prefix string) {
	for _, entry := range m.Values {
		key := entry.Key.GetToken().Value
		path := prefix + key
		s, known := r.spellings[path]
		_, sub := entry.Value.(*ast.MappingNode)
		empty := entry.Value.Type() == ast.NullType
		switch {
		case r.sections[path] && sub:
			r.mapping(entry.Value.(*ast.MappingNode), path+".")
		case r.sections[path] && empty:
			// All lines of the section are commented out.
		case known && (prefix != "" || !strings.Contains(key, ".")):
			r.value(s, entry)
		case r.sections[path]:
			r.refuseAt(entry.Key, path, "is a section: write its settings below it, each on a line of its own")
		case known:
			outer, inner, _ := strings.Cut(key, ".")
			r.refuseAt(entry.Key, "", fmt.Sprintf("unknown key %s: write it as %s: in a section %s:", path, inner, outer))
		default:
			r.refuseAt(entry.Key, "", "unknown key "+path+didYouMean(path, r.names()))
		}
	}
}

func (r *fileReader) names() []string {
	names := slices.Sorted(maps.Keys(r.spellings))
	return append(names, slices.Sorted(maps.Keys(r.sections))...)
}

func (r *fileReader) value(s spelling, entry *ast.MappingValueNode) {
	items, err := r.items(s, entry.Value)
	if err != nil {
		r.refuseAt(entry.Key, s.target.path, err.Error())
		return
	}
	r.source = append(r.source, assignment{spelling: s, items: items, origin: r.origin(entry.Key)})
}

// items reads a scalar, or for a list the scalars of a sequence.
func (r *fileReader) items(s spelling, n ast.Node) ([]string, error) {
	if !s.target.list() {
		text, err := scalar(n)
		return []string{text}, err
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, errors.New("is a list: write it as [a, b], or [] for none")
	}
	items := make([]string, 0, len(seq.Values))
	for _, v := range seq.Values {
		text, err := scalar(v)
		if err != nil {
			return nil, err
		}
		items = append(items, text)
	}
	return items, nil
}

// scalar returns the text of a scalar as it was written.
func scalar(n ast.Node) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	case *ast.NullNode:
		return "", errors.New("has no value: write one, or remove the line for the default")
	case *ast.MappingNode, *ast.SequenceNode:
		return "", errors.New("takes a single value")
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return "", errors.New("is written with an anchor, an alias or a tag: write the value itself")
	}
	return "", errors.New("is not a plain value: write it on one line, in quotes if need be")
}
