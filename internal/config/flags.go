package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Flags is the settings as flags of a command. Secrets have none, as every user of
// a machine can read the arguments of its processes; there is one for the file that
// holds the secret.
type Flags struct {
	paths  []string      // of each field
	target reflect.Value // pointer to a struct of pointers, nil where a flag is not given
}

// NewFlags returns a set of flags, none of them given.
func NewFlags() *Flags {
	f, m := &Flags{}, readManual()
	var fields []reflect.StructField
	for _, sec := range declared().sections {
		for _, s := range sec.settings {
			path := s.path
			if s.secret() {
				path += fileSuffix
			}
			f.paths = append(f.paths, path)
			fields = append(fields, s.flagField(len(fields), path, sec.path, m.of(s.field)))
		}
	}
	f.target = reflect.New(reflect.StructOf(fields))
	return f
}

// Struct returns a pointer to a struct with one field a flag, tagged for
// alecthomas/kong. It is embedded into a command with
//
//	type serve struct {
//		kong.Plugins // kong.Plugins{flags.Struct()}
//	}
func (f *Flags) Struct() any { return f.target.Interface() }

// Values returns the flags that were given, as [Sources.Flags] takes them.
func (f *Flags) Values() map[string]string {
	values := make(map[string]string)
	for i, path := range f.paths {
		if p := f.target.Elem().Field(i); !p.IsNil() {
			values[path] = fmt.Sprint(p.Elem().Interface())
		}
	}
	return values
}

// flagField declares the flag of a setting. Its value is text, which [Load] parses
// like that of all other sources; only a bool is one, to be given without a value.
func (s setting) flagField(i int, path, group, doc string) reflect.StructField {
	typ := reflect.TypeFor[*string]()
	if s.typ.Kind() == reflect.Bool {
		typ = reflect.TypeFor[*bool]()
	}
	tag := new(tagBuilder)
	tag.add("name", flagName(path))
	tag.add("help", s.flagHelp(doc))
	tag.add("placeholder", s.argument())
	tag.add("group", group)
	if alias := s.tag.Get("alias"); alias != "" {
		tag.add("aliases", flagName(alias))
	}
	return reflect.StructField{Name: "F" + strconv.Itoa(i), Type: typ, Tag: tag.tag()}
}

type tagBuilder struct{ parts []string }

func (b *tagBuilder) add(key, value string) {
	if value != "" {
		b.parts = append(b.parts, key+":"+strconv.Quote(value))
	}
}

func (b *tagBuilder) tag() reflect.StructTag { return reflect.StructTag(strings.Join(b.parts, " ")) }

// flagHelp is one line: the first sentence of the manual, the default, another
// name of the flag.
func (s setting) flagHelp(doc string) string {
	help := firstSentence(doc)
	if s.secret() {
		help = "File that holds the secret: " + help
	}
	var notes []string
	if alias := s.tag.Get("alias"); alias != "" {
		notes = append(notes, "also --"+flagName(alias))
	}
	if text := strings.Join(s.defaultItems(), ","); text != "" && s.typ.Kind() != reflect.Bool {
		notes = append(notes, "default "+text)
	}
	if len(notes) == 0 {
		return help + "."
	}
	return help + " (" + strings.Join(notes, ", ") + ")."
}

// argument stands for the value in a flag's help.
func (s setting) argument() string {
	if arg := s.tag.Get("arg"); arg != "" {
		return arg
	}
	if values := s.enum(); values != nil {
		return strings.Join(values, "|")
	}
	switch s.typ {
	case reflect.TypeFor[Bytes]():
		return "SIZE"
	case reflect.TypeFor[Duration]():
		return "DURATION"
	case reflect.TypeFor[Secret]():
		return "FILE"
	case reflect.TypeFor[int]():
		return "N"
	}
	return ""
}
