package config

import (
	"encoding"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// setting is one declaration: a field of [Config] or of one of its sections.
type setting struct {
	path  string // "hot.max_bytes"
	field string // "Hot.MaxBytes", its name in the manual
	index []int  // of the field in Config
	typ   reflect.Type
	tag   reflect.StructTag
}

// section is a field of [Config] that holds settings.
type section struct {
	path     string // "hot"; empty for the settings that are in no section
	field    string // "Config.Hot"
	settings []setting
}

// schema is all declarations, in the order of the source.
type schema struct {
	sections []section
}

// spelling is a way to name a setting: its path, its alias, or for a secret the
// path with "_file" behind it, whose value names a file that holds the secret.
type spelling struct {
	path   string
	file   bool
	target setting
}

const fileSuffix = "_file"

// declared reads the declarations from the fields of [Config].
func declared() schema {
	var s schema
	s.sections = append(s.sections, section{})
	root := reflect.TypeFor[Config]()
	for i := range root.NumField() {
		f := root.Field(i)
		if !isSection(f.Type) {
			s.sections[0].settings = append(s.sections[0].settings, newSetting(root, f, ""))
			continue
		}
		sec := section{path: f.Tag.Get("key"), field: fieldName(root, f)}
		for j := range f.Type.NumField() {
			sub := f.Type.Field(j)
			sub.Index = []int{i, j}
			sec.settings = append(sec.settings, newSetting(f.Type, sub, sec.path+"."))
		}
		s.sections = append(s.sections, sec)
	}
	return s
}

func newSetting(owner reflect.Type, f reflect.StructField, prefix string) setting {
	return setting{
		path:  prefix + f.Tag.Get("key"),
		field: fieldName(owner, f),
		index: f.Index,
		typ:   f.Type,
		tag:   f.Tag,
	}
}

func fieldName(owner reflect.Type, f reflect.StructField) string { return owner.Name() + "." + f.Name }

// isSection tells the structs that group settings from those that are a value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// settings is the settings of all sections.
func (s schema) settings() []setting {
	var all []setting
	for _, sec := range s.sections {
		all = append(all, sec.settings...)
	}
	return all
}

// spellings is every way to name a setting, by path.
func (s schema) spellings() map[string]spelling {
	all := make(map[string]spelling)
	for _, set := range s.settings() {
		for _, path := range set.paths() {
			all[path] = spelling{path: path, target: set}
			if set.secret() {
				all[path+fileSuffix] = spelling{path: path + fileSuffix, file: true, target: set}
			}
		}
	}
	return all
}

// paths is the setting's path and its alias, if it has one.
func (s setting) paths() []string {
	if alias := s.tag.Get("alias"); alias != "" {
		return []string{s.path, alias}
	}
	return []string{s.path}
}

// key is the last element of the path.
func (s setting) key() string { return s.path[strings.LastIndexByte(s.path, '.')+1:] }

func (s setting) secret() bool { return s.typ == reflect.TypeFor[Secret]() }

func (s setting) list() bool { return s.typ.Kind() == reflect.Slice }

// enum is the values that the setting takes, none if it is not bound to a few.
func (s setting) enum() []string {
	if e := s.tag.Get("enum"); e != "" {
		return strings.Split(e, ",")
	}
	return nil
}

// in is the setting's field in a configuration.
func (s setting) in(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// envName is the environment variable of a path: FIRN_HOT_MAX_BYTES.
func envName(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// flagName is the flag of a path, without its dashes: hot.max-bytes.
func flagName(path string) string { return strings.ReplaceAll(path, "_", "-") }

// parse reads a value: one item, or any number for a list.
func (s setting) parse(items []string) (reflect.Value, error) {
	v := reflect.New(s.typ).Elem()
	if s.list() {
		for _, item := range items {
			e := reflect.New(s.typ.Elem()).Elem()
			if err := parseScalar(e, item); err != nil {
				return v, err
			}
			v = reflect.Append(v, e)
		}
		return v, nil
	}
	if err := s.checkEnum(items[0]); err != nil {
		return v, err
	}
	return v, parseScalar(v, items[0])
}

func parseScalar(v reflect.Value, text string) error {
	switch p := v.Addr().Interface().(type) {
	case *netip.Prefix:
		return parsePrefix(p, text)
	case *Secret:
		*p = Secret(text)
		return nil
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	case *string:
		*p = text
		return nil
	case *bool:
		switch text {
		case "true":
			*p = true
		case "false":
			*p = false
		default:
			return fmt.Errorf("%q is neither true nor false", text)
		}
		return nil
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*p = n
		return nil
	}
	panic("config: no parser for a setting of type " + v.Type().String())
}

func parsePrefix(p *netip.Prefix, text string) error {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		if a, err := netip.ParseAddr(text); err == nil {
			return fmt.Errorf("%q is an address, not a network: write %s/%d for this one", text, a, a.BitLen())
		}
		return fmt.Errorf("%q is not a CIDR: write it as in 10.0.0.0/8", text)
	}
	if prefix != prefix.Masked() {
		return fmt.Errorf("%q has bits set behind its length: write %s for the network", text, prefix.Masked())
	}
	*p = prefix
	return nil
}

// format returns the items of a value as [setting.parse] reads them. Secrets are
// masked.
func (s setting) format(v reflect.Value) []string {
	if !s.list() {
		return []string{formatScalar(v)}
	}
	items := make([]string, 0, v.Len())
	for i := range v.Len() {
		items = append(items, formatScalar(v.Index(i)))
	}
	return items
}

func formatScalar(v reflect.Value) string {
	if level, ok := v.Interface().(slog.Level); ok {
		return strings.ToLower(level.String())
	}
	return fmt.Sprint(v.Interface())
}

// defaultItems is the default as [setting.parse] reads it.
func (s setting) defaultItems() []string {
	text, ok := s.tag.Lookup("default")
	if s.list() {
		if !ok {
			return nil
		}
		return strings.Split(text, ",")
	}
	return []string{text}
}

// Default is the configuration of a server that is told nothing. Settings whose
// default depends on others are zero, see [Config.Resolved].
func Default() Config {
	var c Config
	for _, s := range declared().settings() {
		if _, ok := s.tag.Lookup("default"); !ok {
			continue
		}
		v, err := s.parse(s.defaultItems())
		if err != nil {
			panic("config: default of " + s.path + ": " + err.Error())
		}
		s.in(&c).Set(v)
	}
	return c
}
