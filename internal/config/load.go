package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// Sources is where settings come from. The zero Sources has none.
type Sources struct {
	// File is the path of a YAML file, empty for none. FIRN_CONFIG in Environ
	// names it as well; this one goes first.
	File string
	// Environ is environment variables, each "NAME=value". Those that do not
	// begin with FIRN_ are ignored.
	Environ []string
	// Flags is values by path or alias, as [Flags.Values] returns them.
	Flags map[string]string
	// ReadFile reads File and the files that hold secrets. Nil is [os.ReadFile].
	ReadFile func(name string) ([]byte, error)
}

// Origins says for each path where its value came from: "firn.yaml:12",
// "FIRN_LISTEN", "--listen". Paths whose value is the default have no entry.
type Origins map[string]string

// Of returns the origin of a path; "default" if nothing set it.
func (o Origins) Of(path string) string {
	if origin := o[path]; origin != "" {
		return origin
	}
	return "default"
}

// Load reads all sources over the defaults: the file, then the environment, then
// the flags; later ones win. It returns a valid, resolved configuration. Anything
// wrong, in a source or with the result, is a [Problems] holding all of it.
func Load(src Sources) (Config, Origins, error) {
	if src.ReadFile == nil {
		src.ReadFile = os.ReadFile
	}
	l := &loader{
		config:    Default(),
		origins:   make(Origins),
		spellings: declared().spellings(),
		readFile:  src.ReadFile,
	}
	environ, configFile := l.environ(src.Environ)
	if src.File == "" {
		src.File = configFile
	}
	if src.File != "" {
		l.apply(l.file(src.File))
	}
	l.apply(environ)
	l.apply(l.flags(src.Flags))
	l.validate()
	if err := l.problems.err(); err != nil {
		return Config{}, nil, err
	}
	return l.config.Resolved(), l.origins, nil
}

// loader gathers one configuration.
type loader struct {
	config    Config
	origins   Origins
	spellings map[string]spelling
	readFile  func(string) ([]byte, error)
	problems  Problems
}

// assignment is a value that a source gives to a setting.
type assignment struct {
	spelling spelling
	items    []string
	origin   string
}

func (l *loader) refuse(origin, path, message string) {
	p := Problem{Origin: origin, Message: message}
	if path != "" {
		p.Paths = []string{path}
	}
	l.problems = append(l.problems, p)
}

// apply sets what one source says. Saying it twice, under two names, is an error:
// there is no order between them.
func (l *loader) apply(source []assignment) {
	seen := make(map[string]string)
	for _, a := range source {
		path := a.spelling.target.path
		if first := seen[path]; first != "" {
			l.refuse(a.origin, path, "is set by "+first+" already: remove one of them")
			continue
		}
		seen[path] = a.origin
		if err := l.set(a); err != nil {
			l.refuse(a.origin, path, err.Error())
		}
	}
}

func (l *loader) set(a assignment) error {
	if a.spelling.file {
		secret, err := l.readSecret(a.items[0])
		if err != nil {
			return err
		}
		a.items = []string{secret}
	}
	v, err := a.spelling.target.parse(a.items)
	if err != nil {
		return err
	}
	a.spelling.target.in(&l.config).Set(v)
	l.origins[a.spelling.target.path] = a.origin
	return nil
}

// readSecret reads a file that holds nothing but a secret. The line end that
// editors put behind it is not part of it.
func (l *loader) readSecret(name string) (string, error) {
	if name == "" {
		return "", errors.New("names no file")
	}
	data, err := l.readFile(name)
	if err != nil {
		return "", fmt.Errorf("read the secret: %w", err)
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("the file %s is empty: write the secret into it", name)
	}
	return secret, nil
}

// flags turns the values of flags into assignments.
func (l *loader) flags(values map[string]string) []assignment {
	var source []assignment
	for _, path := range slices.Sorted(maps.Keys(values)) {
		s, ok := l.spellings[path]
		if !ok {
			l.refuse("--"+flagName(path), "", "there is no such setting"+didYouMean(path, slices.Sorted(maps.Keys(l.spellings))))
			continue
		}
		source = append(source, assignment{spelling: s, items: s.split(values[path]), origin: "--" + flagName(path)})
	}
	return source
}

// split cuts the text of an environment variable or a flag into items: lists are
// separated by commas, and empty ones have no items.
func (s spelling) split(text string) []string {
	if !s.target.list() {
		return []string{text}
	}
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// validate checks the result, leaving out what only follows from values that
// could not be read.
func (l *loader) validate() {
	unread := make(map[string]bool)
	for _, p := range l.problems {
		for _, path := range p.Paths {
			unread[path] = true
		}
	}
	for _, p := range l.config.problems() {
		if slices.ContainsFunc(p.Paths, func(path string) bool { return unread[path] }) {
			continue
		}
		p.Origin = l.origins[p.Paths[0]]
		l.problems = append(l.problems, p)
	}
}
