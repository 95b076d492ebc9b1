package tiertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"firn/pkg/stream"
	"firn/tier/hot"
)

// generator draws steps that make sense in the state that the model is in.
type generator struct {
	r *rand.Rand
	// The last numbers given out.
	streams, objects int
	fill             uint64
	large            int // payloads about the size of a data value that are left
	used             map[int]bool
	rest             *Op // the part of a pack that is still to be named
}

func newGenerator(seed uint64) *generator {
	return &generator{r: rand.New(rand.NewPCG(seed, 3)), large: 3}
}

// one reports true once in n times.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) step(m *model) Step {
	var s Step
	g.used = make(map[int]bool)
	switch {
	case g.one(8):
		s.Tick = 1 + g.r.Uint64N(3_000)
	case g.one(20):
		s.Tick = 1 + g.r.Uint64N(5_000_000)
	}
	n := 1
	if g.one(3) {
		n = 2 + g.r.IntN(3)
	}
	for range n {
		s.Ops = append(s.Ops, g.op(m))
	}
	s.Ops = apart(s.Ops)
	if g.one(8) {
		s.Crash = &Crash{At: 1 + g.r.IntN(6), Seed: g.r.Uint64()}
		if g.one(2) {
			s.Crash.Unsynced = g.r.IntN(101)
		}
	}
	if g.one(20) {
		s.Restart = true
		if s.Crash != nil {
			s.Crash.At = 1 + g.r.IntN(40)
		}
		if g.one(2) {
			s.SealTarget = []uint64{1, 300, 1000, 5000}[g.r.IntN(4)]
		}
	}
	return s
}

// apart takes out of a group with a trim what may remove a stream: how long history is
// kept tells which came first, and no view shows it.
func apart(ops []Op) []Op {
	if !slices.ContainsFunc(ops, func(o Op) bool { return o.Do == "trim" }) {
		return ops
	}
	return slices.DeleteFunc(ops, func(o Op) bool {
		return slices.Contains([]string{"delete", "expire", "create", "fork"}, o.Do)
	})
}

// weighted are the kinds of ops and how often each is drawn.
var weighted = []struct {
	weight int
	draw   func(*generator, *model) Op
}{
	{40, (*generator).append},
	{10, (*generator).create},
	{9, (*generator).fork},
	{12, (*generator).seal},
	{8, (*generator).pack},
	{8, (*generator).replace},
	{2, func(g *generator, m *model) Op { return Op{Do: "unmerge", Stream: g.stream(m)} }},
	{7, (*generator).evict},
	{5, (*generator).publish},
	{5, (*generator).trim},
	{4, func(g *generator, m *model) Op { return Op{Do: "delete", Stream: g.stream(m)} }},
	{3, func(g *generator, m *model) Op { return Op{Do: "expire", Stream: g.stream(m)} }},
	{2, func(g *generator, m *model) Op { return g.objectOp(m, "abandon", hot.Intended) }},
	{3, func(g *generator, m *model) Op { return g.objectOp(m, "forget", hot.Retired) }},
	{2, func(g *generator, _ *model) Op { return Op{Do: "bucket", Bucket: g.bucket()} }},
	{2, func(g *generator, _ *model) Op { return Op{Do: "unbucket", Bucket: g.bucket()} }},
}

func (g *generator) op(m *model) Op {
	if len(m.names) == 0 {
		return g.create(m)
	}
	total := 0
	for _, w := range weighted {
		total += w.weight
	}
	n := g.r.IntN(total)
	for _, w := range weighted {
		if n -= w.weight; n < 0 {
			return w.draw(g, m)
		}
	}
	return g.append(m)
}

// bucket is "default" or another; deleting the former, which the tier above never
// asks for, is left out.
func (g *generator) bucket() string { return []string{"logs", "events"}[g.r.IntN(2)] }

// stream picks one that has been made, mostly one that is alive.
func (g *generator) stream(m *model) int {
	all := slices.Sorted(maps.Keys(m.streams))
	for range 10 {
		n := all[g.r.IntN(len(all))]
		if e := m.streams[n]; !e.gone && !e.deleted {
			return n
		}
	}
	return all[g.r.IntN(len(all))]
}

func (g *generator) create(*model) Op {
	g.streams++
	o := Op{Do: "create", New: g.streams, Bucket: stream.DefaultBucket, JSON: g.one(2), Close: g.one(12)}
	if g.one(3) {
		o.Bucket = g.bucket()
	}
	o.ID = []string{"a", "b", "c", "d", "e", "f", "streams", "x/y"}[g.r.IntN(8)]
	if g.one(3) {
		g.payload(&o)
	}
	g.lifetime(&o)
	return o
}

func (g *generator) lifetime(o *Op) {
	switch g.r.IntN(10) {
	case 0:
		o.TTL = []int64{-1, 1, 5, 600}[g.r.IntN(4)]
	case 1:
		o.Expires = uint64(epoch.UnixMilli()) + g.r.Uint64N(100_000)
	}
}

func (g *generator) fork(m *model) Op {
	n := g.stream(m)
	e := m.streams[n]
	g.streams++
	o := Op{
		Do: "fork", New: g.streams, Stream: n, Bucket: e.name.Bucket, JSON: e.json, Type: e.contentType,
		At: e.tail(), Anchored: g.one(2), ID: []string{"a", "b", "fork-1", "fork-2", "fork-3"}[g.r.IntN(5)],
	}
	switch g.r.IntN(8) {
	case 0, 1, 2:
		o.At = e.boundaryAfter(e.earliest + g.r.Uint64N(e.tail()-e.earliest+1))
	case 3:
		o.At = e.earliest
	case 4:
		o.At = max(e.earliest, 1) - 1
	case 5:
		o.At++
	}
	if g.one(4) {
		g.payload(&o)
	}
	g.lifetime(&o)
	return o
}

// payload sets a size: mostly small, sometimes at the edges of a data value.
func (g *generator) payload(o *Op) {
	g.fill++
	o.Fill, o.Size = g.fill, 1+g.r.IntN(300)
	if g.large > 0 && g.one(40) {
		g.large--
		o.Size = (1+g.r.IntN(2))*hot.MaxValue - 2 + g.r.IntN(5)
	}
}

func (g *generator) append(m *model) Op {
	o := Op{Do: "append", Stream: g.stream(m), Close: g.one(15)}
	e := m.streams[o.Stream]
	if !o.Close || !g.one(3) {
		g.payload(&o)
	}
	if g.one(40) {
		o.Type = "image/png"
	}
	if g.one(5) {
		seq := fmt.Sprintf("%03d", g.r.IntN(1000))
		if e.seq != nil && !g.one(4) {
			seq = *e.seq + "0"
		}
		o.Seq = &seq
	}
	if g.one(3) {
		o.Producer = g.producer(e)
	}
	return o
}

// producer claims something that is right, or a retry, or out of order.
func (g *generator) producer(e *entity) *stream.Producer {
	p := &stream.Producer{ID: fmt.Sprintf("p%d", g.r.IntN(4))}
	s, known := e.producers[p.ID]
	if !known {
		if g.one(6) {
			p.Seq = 1
		}
		return p
	}
	p.Epoch, p.Seq = s.Epoch, s.Seq+1
	switch g.r.IntN(8) {
	case 0:
		p.Seq = s.Seq
	case 1:
		p.Seq = s.Seq + 2
	case 2:
		p.Epoch, p.Seq = s.Epoch+1, uint64(g.r.IntN(2))
	case 3:
		p.Epoch = max(s.Epoch, 1) - 1
	}
	return p
}

// object picks one in a state that no op of this group uses, 0 if there is none.
func (g *generator) object(m *model, state hot.ObjectState) int {
	for _, key := range slices.Sorted(maps.Keys(m.objects)) {
		var n int
		if _, err := fmt.Sscanf(key, "objects/%d", &n); err == nil && m.objects[key].state == state && !g.used[n] && !g.reserved(n) && !g.one(3) {
			g.used[n] = true
			return n
		}
	}
	return 0
}

// reserved reports whether the rest of a pack is still to be named in an object.
func (g *generator) reserved(object int) bool { return g.rest != nil && g.rest.Object == object }

// intended picks an object to name; without one, the op is to make one.
func (g *generator) intended(m *model) (n int, intend *Op) {
	if n := g.object(m, hot.Intended); n != 0 {
		return n, nil
	}
	g.objects++
	return 0, &Op{Do: "intend", Object: g.objects}
}

func (g *generator) objectOp(m *model, do string, state hot.ObjectState) Op {
	if n := g.object(m, state); n != 0 {
		return Op{Do: do, Object: n}
	}
	return g.append(m)
}

// seal proposes to name a segment that begins at the sealed mark, seldom elsewhere.
func (g *generator) seal(m *model) Op {
	o := Op{Do: "seal", Stream: g.stream(m)}
	e := m.streams[o.Stream]
	o.From, o.To = e.sealed, e.tail()
	if g.one(10) {
		o.From = e.boundaryAfter(e.base + g.r.Uint64N(e.tail()-e.base+1))
	}
	if g.one(2) && o.From < o.To {
		o.To = e.boundaryAfter(o.From + 1 + g.r.Uint64N(o.To-o.From))
	}
	if o.From >= o.To {
		return g.append(m)
	}
	n, intend := g.intended(m)
	if intend != nil {
		return *intend
	}
	o.Object = n
	return o
}

// pack seals ranges of several streams in one object, at times in two steps. Both make
// the same object: bytes that are there do not change.
func (g *generator) pack(m *model) Op {
	if o := g.rest; o != nil && !g.used[o.Object] {
		g.rest, g.used[o.Object] = nil, true
		return *o
	}
	var parts []Part
	for _, n := range g.alike(m) {
		e := m.streams[n]
		p := Part{Stream: n, From: e.sealed, To: e.tail()}
		if g.one(4) && p.From < p.To {
			p.To = e.boundaryAfter(p.From + 1 + g.r.Uint64N(p.To-p.From))
		}
		if g.one(10) {
			p.From = e.boundaryAfter(e.base + g.r.Uint64N(e.tail()-e.base+1))
		}
		if p.From < p.To {
			parts = append(parts, p)
		}
	}
	return g.packOf(m, "pack", parts)
}

// alike picks streams of one bucket and mode.
func (g *generator) alike(m *model) []int {
	first := m.streams[g.stream(m)]
	var list []int
	for _, n := range slices.Sorted(maps.Keys(m.streams)) {
		if e := m.streams[n]; e.name.Bucket == first.name.Bucket && e.json == first.json && !g.one(4) {
			list = append(list, n)
		}
	}
	return list
}

func (g *generator) packOf(m *model, do string, parts []Part) Op {
	if len(parts) == 0 {
		return g.append(m)
	}
	n, intend := g.intended(m)
	if intend != nil {
		return *intend
	}
	o := Op{Do: do, Object: n, Parts: parts, To: uint64(len(parts))}
	if len(parts) > 1 && g.rest == nil && g.one(2) {
		rest := o
		o.To = 1 + g.r.Uint64N(o.To-1)
		rest.From = o.To
		g.rest = &rest
	}
	return o
}

// replace puts what some segments of streams hold into another object.
func (g *generator) replace(m *model) Op {
	var parts []Part
	for _, n := range g.alike(m) {
		s := m.streams[n].segments
		if len(s) == 0 {
			continue
		}
		i := g.r.IntN(len(s))
		j := i + g.r.IntN(len(s)-i)
		if g.one(2) {
			i, j = 0, len(s)-1
		}
		parts = append(parts, Part{Stream: n, From: s[i].From, To: s[j].To})
	}
	return g.packOf(m, "replace", parts)
}

func (g *generator) evict(m *model) Op {
	o := Op{Do: "evict", Stream: g.stream(m)}
	e := m.streams[o.Stream]
	o.At = e.sealed
	switch g.r.IntN(4) {
	case 0:
		o.At = e.cut + g.r.Uint64N(e.sealed-e.cut+1)
	case 1:
		o.At += uint64(g.r.IntN(2))
	}
	return o
}

func (g *generator) publish(m *model) Op {
	o := Op{Do: "publish", Stream: g.stream(m), Size: 1 + g.r.IntN(100)}
	e := m.streams[o.Stream]
	o.At = e.boundaryAfter(e.earliest + g.r.Uint64N(e.tail()-e.earliest+1))
	switch g.r.IntN(8) {
	case 0:
		o.At = e.tail() + 1
	case 1:
		o.At = max(e.earliest, 1) - 1
	}
	n, intend := g.intended(m)
	if intend != nil {
		return *intend
	}
	g.fill++
	o.Object, o.Fill = n, g.fill
	return o
}

func (g *generator) trim(m *model) Op {
	// Any stream, those that are gone in particular.
	all := slices.Sorted(maps.Keys(m.streams))
	return Op{Do: "trim", Stream: all[g.r.IntN(len(all))], Size: 1 + g.r.IntN(3)}
}
