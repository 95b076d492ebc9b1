package verify

import (
	"fmt"
	"maps"
	"slices"

	"firn/pkg/stream"
)

// Format is the key layout that this package knows. It reads what was written before
// it, too, in a store that no later release has opened.
const (
	Format    = "firn-hot-2"
	oldFormat = "firn-hot-1"
)

func (c *Catalog) report(id stream.ID, format string, args ...any) {
	c.problems = append(c.problems, Problem{Code: CodeCatalog, Stream: id, Text: fmt.Sprintf(format, args...)})
}

// Check returns all problems; none means that the store agrees with itself.
func (c *Catalog) Check() []Problem {
	undecoded := len(c.problems)
	if c.Format != Format && c.Format != oldFormat {
		c.report(0, "format is %q, this release knows %q", c.Format, Format)
	}
	if _, err := stream.ParseID(c.StoreID); err != nil {
		c.report(0, "store has no identity")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Streams)) {
		c.checkStream(id, c.Streams[id])
	}
	c.checkOrphans()
	c.checkNames()
	c.checkForks()
	c.checkSegments()
	c.checkObjects()
	c.checkIndexes()
	c.checkSubscriptions()
	c.checkState()
	found := slices.Clone(c.problems)
	c.problems = c.problems[:undecoded]
	return found
}

// checkStream holds what a record and its data promise by themselves.
func (c *Catalog) checkStream(id stream.ID, s *Stream) {
	if !(s.Base <= s.Floor && s.Floor <= s.Cut && s.Cut <= s.Sealed && s.Sealed <= s.Tail) {
		c.report(id, "marks are out of order: base %d, floor %d, cut %d, sealed %d, tail %d", s.Base, s.Floor, s.Cut, s.Sealed, s.Tail)
	}
	if s.Earliest > s.Tail {
		c.report(id, "earliest %d is past the tail %d", s.Earliest, s.Tail)
	}
	if s.Mode != stream.Bytes && s.Mode != stream.JSON {
		c.report(id, "unknown content mode %d", s.Mode)
	}
	if s.Fork == nil && s.Base != 0 {
		c.report(id, "has base %d but is no fork", s.Base)
	}
	if s.Closer != nil && !s.Closed {
		c.report(id, "has a closer but is open")
	}
	if s.Deleted && s.Snapshot != nil {
		c.report(id, "is deleted but shows a snapshot")
	}
	if n := s.Snapshot; n != nil && n.Position != s.Earliest {
		c.report(id, "snapshot at %d does not begin at the earliest position %d", n.Position, s.Earliest)
	}
	for i, f := range s.Former {
		if f.Life >= s.Life || i > 0 && f.Life <= s.Former[i-1].Life || f.Upto > s.Tail {
			c.report(id, "was life %d up to %d, is life %d with tail %d", f.Life, f.Upto, s.Life, s.Tail)
		}
	}
	if got := uint64(len(c.Producers[id])); got != s.Producers {
		c.report(id, "counts %d producers, has %d", s.Producers, got)
	}
	if got := uint64(len(c.Segments[id])); got != s.Segments {
		c.report(id, "counts %d segments, has %d", s.Segments, got)
	}
	c.checkValues(id, s)
}

// checkValues: the values tile [cut, tail); only the first one may begin below it.
func (c *Catalog) checkValues(id stream.ID, s *Stream) {
	values, pos := c.Values[id], s.Cut
	since := uint64(0)
	for i, v := range values {
		switch {
		case v.From == v.To:
			c.report(id, "data value at %d is empty", v.From)
		case i == 0 && v.From < s.Base:
			c.report(id, "data value at %d lies below the base %d", v.From, s.Base)
		case i == 0 && v.From < pos && v.To <= pos:
			c.report(id, "data value [%d,%d) is kept below the cut %d", v.From, v.To, pos)
		case v.From != pos && (i > 0 || v.From > pos):
			c.report(id, "data values do not meet: one begins at %d, want %d", v.From, pos)
		}
		if v.From <= s.Sealed && s.Sealed < v.To {
			since = v.Ms
		}
		pos = v.To
	}
	if pos != s.Tail {
		c.report(id, "data ends at %d, the tail is %d", pos, s.Tail)
	}
	if since != s.UnsealedSince {
		c.report(id, "unsealed since %d, its oldest unsealed value is of %d", s.UnsealedSince, since)
	}
}

// checkOrphans: what belongs to no stream is gone with it. Segments stay named
// until they are trimmed; checkSegments looks at them.
func (c *Catalog) checkOrphans() {
	for id, values := range c.Values {
		if c.Streams[id] == nil {
			c.report(id, "is gone, %d data values are left", len(values))
		}
	}
	for id, producers := range c.Producers {
		if c.Streams[id] == nil {
			c.report(id, "is gone, %d producers are left", len(producers))
		}
	}
}

// checkNames: names and records name each other, and buckets count them.
func (c *Catalog) checkNames() {
	counts := make(map[string]Bucket)
	for name, id := range c.Names {
		s := c.Streams[id]
		if s == nil || s.Name != name {
			c.report(id, "is what %q names, but has no record of that name", name)
			continue
		}
		b := counts[name.Bucket]
		b.Names++
		if name.Listed() && !s.Deleted {
			b.Listed++
		}
		counts[name.Bucket] = b
	}
	for id, s := range c.Streams {
		if c.Names[s.Name] != id {
			c.report(id, "has the name %q, which names another or none", s.Name)
		}
		if _, ok := c.Buckets[s.Name.Bucket]; !ok {
			c.report(id, "is in bucket %q, which has no record", s.Name.Bucket)
		}
	}
	for name, b := range c.Buckets {
		if is := counts[name]; is.Listed != b.Listed || is.Names != b.Names {
			c.report(0, "bucket %q counts %d listed streams and %d names, has %d and %d", name, b.Listed, b.Names, is.Listed, is.Names)
		}
	}
}

// checkState: the store-wide counters are the sums of the records.
func (c *Catalog) checkState() {
	is := State{Life: c.State.Life, Fence: c.State.Fence}
	for id, s := range c.Streams {
		is.Hot += s.Tail - s.Cut
		is.Unsealed += s.Tail - s.Sealed
		if !s.Deleted {
			is.Streams++
		}
		if s.Life > c.State.Life {
			c.report(id, "has life %d, the last one given is %d", s.Life, c.State.Life)
		}
	}
	if is != c.State {
		c.report(0, "store state is %+v, its streams add up to %+v", c.State, is)
	}
}
