package glob

import (
	"slices"
	"strings"
)

// Index finds the values whose pattern matches a path. The zero Index is empty. It is
// not safe for concurrent use.
type Index[T comparable] struct {
	root node[T]
	// at and next are the nodes that the path has led to; visit tells them from those
	// of another step.
	at, next []*node[T]
	visit    uint64
}

// node is a prefix of patterns.
type node[T comparable] struct {
	literal map[string]*node[T]
	one     *node[T] // "*"
	deep    *node[T] // "**"
	loops   bool     // this node stands for "**"
	values  []T      // whose patterns end here
	visit   uint64
}

// Add puts a value under a pattern. The zero Pattern is no place for one.
func (x *Index[T]) Add(p Pattern, v T) {
	if p.Empty() {
		return
	}
	n := &x.root
	for _, seg := range p.segments {
		n = n.child(seg)
	}
	n.values = append(n.values, v)
}

func (n *node[T]) child(seg string) *node[T] {
	switch seg {
	case one:
		if n.one == nil {
			n.one = &node[T]{}
		}
		return n.one
	case deep:
		if n.deep == nil {
			n.deep = &node[T]{loops: true}
		}
		return n.deep
	}
	c := n.literal[seg]
	if c == nil {
		if n.literal == nil {
			n.literal = make(map[string]*node[T])
		}
		c = &node[T]{}
		n.literal[seg] = c
	}
	return c
}

// Remove takes away what Add has put there.
func (x *Index[T]) Remove(p Pattern, v T) {
	if !p.Empty() {
		x.root.remove(p.segments, v)
	}
}

// remove reports whether the node is of no more use.
func (n *node[T]) remove(segments []string, v T) bool {
	if len(segments) == 0 {
		if i := slices.Index(n.values, v); i >= 0 {
			n.values = slices.Delete(n.values, i, i+1)
		}
	} else if c := n.child(segments[0]); c.remove(segments[1:], v) {
		switch segments[0] {
		case one:
			n.one = nil
		case deep:
			n.deep = nil
		default:
			delete(n.literal, segments[0])
		}
	}
	return n.empty()
}

func (n *node[T]) empty() bool {
	return len(n.values) == 0 && len(n.literal) == 0 && n.one == nil && n.deep == nil
}

// Match calls fn once for every value whose pattern matches the path.
func (x *Index[T]) Match(path string, fn func(T)) {
	x.visit++
	x.at = x.reach(x.at[:0], &x.root)
	for rest, more := path, true; more && len(x.at) > 0; {
		var seg string
		seg, rest, more = strings.Cut(rest, "/")
		x.visit++
		next := x.next[:0]
		for _, n := range x.at {
			next = x.reach(next, n.literal[seg])
			next = x.reach(next, n.one)
			if n.loops {
				next = x.reach(next, n)
			}
		}
		x.at, x.next = next, x.at
	}
	for _, n := range x.at {
		for _, v := range n.values {
			fn(v)
		}
	}
}

// reach adds a node, and what "**" for no segment leads to from it.
func (x *Index[T]) reach(to []*node[T], n *node[T]) []*node[T] {
	for ; n != nil && n.visit != x.visit; n = n.deep {
		n.visit = x.visit
		to = append(to, n)
	}
	return to
}

// Empty reports whether the index has no value.
func (x *Index[T]) Empty() bool {
	return x.root.empty()
}
