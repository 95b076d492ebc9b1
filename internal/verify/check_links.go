package verify

import (
	"cmp"
	"slices"

	"firn/pkg/segment"
	"firn/pkg/stream"
)

// checkForks: each fork has one link, at what it needs of its source, and records
// count and need what their links say.
func (c *Catalog) checkForks() {
	links := make(map[ForkLink]bool, len(c.Forks))
	counts, lowest := make(map[stream.ID]uint64), make(map[stream.ID]uint64)
	for _, l := range c.Forks {
		links[l] = true
		if counts[l.Source] == 0 || l.Need < lowest[l.Source] {
			lowest[l.Source] = l.Need
		}
		counts[l.Source]++
		if f := c.Streams[l.Fork]; f == nil || f.Fork == nil || f.Fork.Source != l.Source {
			c.report(l.Fork, "has a fork link to %s but is no fork of it", l.Source)
		}
	}
	for id, s := range c.Streams {
		if s.Forks != counts[id] {
			c.report(id, "counts %d forks, has %d links", s.Forks, counts[id])
		}
		if s.Deleted && s.Forks == 0 {
			c.report(id, "is deleted and no fork keeps it")
		}
		c.checkNeed(id, s, counts[id] > 0, lowest[id])
		if s.Fork == nil {
			continue
		}
		want := ForkLink{Source: s.Fork.Source, Need: Never, Fork: id}
		if s.Need < s.Base {
			want.Need = s.Need
		}
		if !links[want] {
			c.report(id, "has no fork link to %s at %d", want.Source, want.Need)
		}
		c.checkSource(id, s)
	}
}

func (c *Catalog) checkNeed(id stream.ID, s *Stream, forked bool, lowest uint64) {
	need := Never
	if !s.Deleted {
		need = s.Earliest
	}
	if forked {
		need = min(need, lowest)
	}
	if s.Need != need {
		c.report(id, "needs bytes from %d on, its readers and forks from %d", s.Need, need)
	}
	if floor := max(s.Base, min(need, s.Tail)); s.Floor != floor {
		c.report(id, "floor is %d, what is needed begins at %d", s.Floor, floor)
	}
}

func (c *Catalog) checkSource(id stream.ID, s *Stream) {
	src := c.Streams[s.Fork.Source]
	switch {
	case src == nil:
		c.report(id, "source %s of the fork has no record", s.Fork.Source)
	case src.Tail < s.Base:
		c.report(id, "forks off at %d, past the tail %d of its source", s.Base, src.Tail)
	case src.Life != s.Life || src.Mode != s.Mode:
		c.report(id, "differs from its source in life or mode")
	}
}

// checkSegments: from the floor to the sealed mark a stream's segments meet each
// other; below the floor, and of streams that are gone, they wait to be trimmed.
func (c *Catalog) checkSegments() {
	held := make(map[Held]bool, len(c.Held))
	for _, h := range c.Held {
		held[h] = true
	}
	wanted := 0
	for id, refs := range c.Segments {
		s := c.Streams[id]
		slices.SortFunc(refs, func(a, b segment.Ref) int { return cmp.Compare(a.From, b.From) })
		for i, r := range refs {
			if i > 0 && r.From < refs[i-1].To {
				c.report(id, "segments overlap at %d", r.From)
			}
			if (s == nil || r.To <= s.Floor) && !c.Trim[id] {
				c.report(id, "has a segment at %d to let go of, but is not in that index", r.From)
			}
			h := Held{Ms: lastMs(r), ID: id, From: r.From, To: r.To}
			// An incarnation that went away with its hot copy may be in the index still.
			switch is := held[h]; {
			// Below the floor the entry goes with the segment.
			case s != nil && r.To > s.Floor && is != (r.To > s.Cut):
				c.report(id, "segment [%d,%d) is in the eviction order: %t; the cut is %d", r.From, r.To, is, s.Cut)
			case is:
				wanted++
			}
		}
		if s != nil {
			c.checkTiling(id, s, refs)
		}
	}
	if wanted != len(c.Held) {
		c.report(0, "eviction order has %d entries, %d of them are of segments", len(c.Held), wanted)
	}
	for id, s := range c.Streams {
		if len(c.Segments[id]) == 0 {
			c.checkTiling(id, s, nil)
		}
	}
}

func lastMs(r segment.Ref) uint64 {
	if len(r.Frames) == 0 {
		return 0
	}
	return r.Frames[len(r.Frames)-1].TimeMs
}

func (c *Catalog) checkTiling(id stream.ID, s *Stream, refs []segment.Ref) {
	pos := s.Floor
	for _, r := range refs {
		switch {
		case r.From < s.Base || r.To > s.Sealed:
			c.report(id, "segment [%d,%d) is outside of what is sealed, [%d,%d)", r.From, r.To, s.Base, s.Sealed)
		case r.To <= s.Floor:
		case r.From > pos:
			c.report(id, "has no segment at %d", pos)
			fallthrough
		default:
			pos = r.To
		}
	}
	if pos != s.Sealed {
		c.report(id, "segments end at %d, sealed is %d", pos, s.Sealed)
	}
}

// checkObjects: an object is live as long as something names it, counts that, and
// is in the queue while it is not live.
func (c *Catalog) checkObjects() {
	live := make(map[string]uint64)
	for _, refs := range c.Segments {
		for _, r := range refs {
			live[r.Object] += r.To - r.From
		}
	}
	for _, s := range c.Streams {
		if s.Snapshot != nil {
			live[s.Snapshot.Object]++
		}
	}
	for name := range live {
		if _, ok := c.Objects[name]; !ok {
			c.report(0, "object %q is named but has no record", name)
		}
	}
	queued := make(map[Queued]bool, len(c.Queue))
	for _, q := range c.Queue {
		queued[q] = true
	}
	due := 0
	for name, o := range c.Objects {
		switch o.State {
		case Intended, Live, Retired:
		default:
			c.report(0, "object %q has the unknown state %d", name, o.State)
		}
		if o.Live != live[name] || (o.State == Live) != (o.Live > 0) {
			c.report(0, "object %q in state %d counts %d live, %d is named", name, o.State, o.Live, live[name])
		}
		if o.State == Intended && o.Due == 0 || o.State == Live && o.Due != 0 {
			c.report(0, "object %q in state %d is due at %d", name, o.State, o.Due)
		}
		if o.Content != 0 && o.Live > o.Content {
			c.report(0, "object %q holds %d content bytes, %d are named", name, o.Content, o.Live)
		}
		if o.sparse() != c.Sparse[name] {
			c.report(0, "object %q with %d of %d content bytes named is in the index of sparse ones: %t", name, o.Live, o.Content, c.Sparse[name])
		}
		if o.Due != 0 {
			due++
			if !queued[Queued{Due: o.Due, Object: name}] {
				c.report(0, "object %q is due at %d but not in the queue", name, o.Due)
			}
		}
	}
	for name := range c.Sparse {
		if _, ok := c.Objects[name]; !ok {
			c.report(0, "object %q is in the index of sparse ones but has no record", name)
		}
	}
	if due != len(c.Queue) {
		c.report(0, "queue has %d entries, %d objects are due", len(c.Queue), due)
	}
}

// checkIndexes: every entry by time or need follows from a record, and each record
// has its entries.
func (c *Catalog) checkIndexes() {
	unsealed, expiry := set(c.Unsealed), set(c.Expiry)
	var ready, aging, expiring int
	for id, s := range c.Streams {
		left := s.Tail > s.Sealed
		if left {
			aging++
			if !unsealed[Timed{Ms: s.UnsealedSince, ID: id}] {
				c.report(id, "has unsealed bytes since %d but is not in that index", s.UnsealedSince)
			}
		}
		if s.Deadline != 0 && !s.Deleted {
			expiring++
			if !expiry[Timed{Ms: s.Deadline, ID: id}] {
				c.report(id, "expires at %d but is not in that index", s.Deadline)
			}
		}
		if s.Ready {
			ready++
		}
		switch {
		case s.Ready != c.Ready[id]:
			c.report(id, "is ready to seal: %t; in that index: %t", s.Ready, c.Ready[id])
		case s.Ready && !left:
			c.report(id, "is ready to seal but has nothing unsealed")
		}
	}
	for _, n := range []struct {
		index     string
		has, want int
	}{
		{"unsealed", len(c.Unsealed), aging}, {"expiry", len(c.Expiry), expiring}, {"ready", len(c.Ready), ready},
	} {
		if n.has != n.want {
			c.report(0, "index of %s streams has %d entries, want %d", n.index, n.has, n.want)
		}
	}
}

func set(list []Timed) map[Timed]bool {
	m := make(map[Timed]bool, len(list))
	for _, e := range list {
		m[e] = true
	}
	return m
}
