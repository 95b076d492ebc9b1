package backup

import (
	"fmt"
	"strconv"
	"strings"

	"firn/tier/hot"
)

// Kind says what an object of a generation is.
type Kind byte

const (
	// Part is one of several objects of a copy, and not the last.
	Part Kind = 1
	// Base is the last object of a copy of everything.
	Base Kind = 2
	// Delta is the last object of a copy of what has changed since the one before.
	Delta Kind = 3
	// Stop is an empty Delta: the server has stopped in order, nothing came after it.
	Stop Kind = 4
)

var kindNames = map[Kind]string{Part: "part", Base: "base", Delta: "delta", Stop: "stop"}

// String is the kind as keys have it.
func (k Kind) String() string { return kindNames[k] }

// prefixOf is what the keys of a store's copies begin with.
func prefixOf(store string) string { return store + "/catalog/" }

// name is what a key says of an object.
type name struct {
	generation hot.Generation
	seq        uint64
	ms         uint64 // the moment of the copy
	kind       Kind
}

// key is {store}/catalog/{fence}-{number}/{sequence}-{ms}-{kind}.copy: keys of one
// store sort as its copies were made.
func (n name) key(store string) string {
	return fmt.Sprintf("%s%s/%08d-%016d-%s.copy", prefixOf(store), n.generation, n.seq, n.ms, n.kind)
}

// parseName takes a key apart. What does not read back as itself is no key of a copy.
func parseName(store, key string) (name, bool) {
	rest, ok := strings.CutPrefix(key, prefixOf(store))
	generation, file, ok2 := strings.Cut(rest, "/")
	fence, number, ok3 := strings.Cut(generation, "-")
	file, ok4 := strings.CutSuffix(file, ".copy")
	parts := strings.Split(file, "-")
	if !ok || !ok2 || !ok3 || !ok4 || len(parts) != 3 {
		return name{}, false
	}
	var n name
	for _, f := range []struct {
		to   *uint64
		text string
	}{{&n.generation.Fence, fence}, {&n.generation.Number, number}, {&n.seq, parts[0]}, {&n.ms, parts[1]}} {
		v, err := strconv.ParseUint(f.text, 10, 64)
		if err != nil {
			return name{}, false
		}
		*f.to = v
	}
	for k, text := range kindNames {
		if text == parts[2] {
			n.kind = k
		}
	}
	return n, n.kind != 0 && n.key(store) == key
}
