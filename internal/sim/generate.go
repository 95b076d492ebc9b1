package sim

import (
	"fmt"
	"math/rand/v2"

	"firn/pkg/stream"
)

// generator draws steps that make sense in the state that the world is in. Each run
// leaves some kinds of steps out, or likes them, so that runs differ in more than the
// order of things.
type generator struct {
	r       *rand.Rand
	seed    uint64
	weights []int
	total   int
	// How often, once in n steps, each is drawn; 0 for never.
	crash, fault, tick int
	fill               uint64
}

func newGenerator(seed uint64) *generator {
	g := &generator{r: rand.New(rand.NewPCG(seed, 3)), seed: seed}
	for _, k := range drawn {
		weight := k.weight * []int{0, 1, 2, 2, 2, 6}[g.r.IntN(6)]
		if k.always {
			weight = max(weight, k.weight)
		}
		g.weights = append(g.weights, weight)
		g.total += weight
	}
	g.crash = []int{0, 8, 16, 30}[g.r.IntN(4)]
	g.fault = []int{0, 4, 8, 20}[g.r.IntN(4)]
	g.tick = []int{5, 10, 20}[g.r.IntN(3)]
	return g
}

// one reports true once in n times, never for 0.
func (g *generator) one(n int) bool { return n > 0 && g.r.IntN(n) == 0 }

func (g *generator) pick(of ...int) int { return of[g.r.IntN(len(of))] }

func (g *generator) world() World {
	return World{
		Seed: g.seed, Page: g.pick(40, 128, 1000), Frame: g.pick(16, 48, 200), Cache: g.pick(600, 4<<10, 64<<10),
		Target: uint64(g.pick(60, 200, 600, 2000)), Budget: uint64(g.pick(1, 200, 600, 2000)), Ahead: g.pick(0, 0, 100),
		Forever: g.one(6), Backup: g.one(3),
	}
}

// drawn are the kinds of steps and how often each is drawn.
var drawn = []struct {
	weight int
	always bool
	draw   func(*generator, *world, *Step)
}{
	{30, true, (*generator).append},
	{5, true, (*generator).create},
	{8, false, (*generator).fork},
	{4, false, func(g *generator, w *world, s *Step) { s.Do, s.Stream = "delete", g.name(w) }},
	{8, false, (*generator).publish},
	{4, false, func(g *generator, w *world, s *Step) { s.Do, s.At, s.Off = "read", g.r.IntN(1001), g.off() }},
	{4, false, func(_ *generator, _ *world, s *Step) { s.Do = "bootstrap" }},
	{2, false, func(_ *generator, _ *world, s *Step) { s.Do = "snapshot" }},
	{1, false, func(g *generator, w *world, s *Step) {
		s.Do, s.Stream, s.Bucket = g.text("bucket", "unbucket"), "", other
	}},
	{40, true, (*generator).sealing},
	{15, false, func(g *generator, w *world, s *Step) { g.sealAll(w, s) }},
	{8, false, (*generator).rewrite},
	{4, false, func(g *generator, _ *world, s *Step) {
		s.Do, s.At, s.Size, s.Slot, s.Who = "grow", 3+g.r.IntN(7), 10+g.r.IntN(40), g.r.IntN(4), g.r.IntN(2)
	}},
	{8, true, (*generator).evict},
	{4, false, func(_ *generator, _ *world, s *Step) { s.Do, s.Stream = "trim", "" }},
	{8, false, func(_ *generator, _ *world, s *Step) { s.Do, s.Stream = "sweep", "" }},
	{8, false, func(g *generator, _ *world, s *Step) { s.Do, s.Stream, s.Who = "pass", "", g.r.IntN(2) }},
	{4, false, (*generator).idle},
	{6, false, func(_ *generator, w *world, s *Step) {
		if s.Do, s.Stream = "idle", ""; w.Backup {
			s.Do = "backup"
		}
	}},
	{3, false, func(_ *generator, w *world, s *Step) {
		if s.Do, s.Stream = "restart", ""; w.Backup {
			s.Do = "lose"
		}
	}},
	{5, false, (*generator).reader},
	{1, false, func(_ *generator, _ *world, s *Step) { s.Do, s.Stream = "land", "" }},
	{4, false, func(_ *generator, w *world, s *Step) {
		if s.Do, s.Stream = "keep", ""; w.older != nil {
			s.Do = "stale"
		}
	}},
	{3, false, func(g *generator, _ *world, s *Step) { s.Do, s.At = "scan", g.pick(0, g.r.IntN(1000)) }},
	{4, false, func(g *generator, _ *world, s *Step) { s.Do, s.Stream = "restart", ""; g.power(s, 60) }},
	{1, false, func(g *generator, _ *world, s *Step) { s.Do, s.Stream = "crash", ""; g.power(s, 60) }},
}

// other is the bucket beside the default one.
const other = "logs"

func (g *generator) text(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) off() int { return g.pick(0, 0, 0, 0, 0, 0, 1, -1) }

func (g *generator) step(w *world) Step {
	g.fill++
	s := Step{Fill: g.fill<<8 | g.r.Uint64N(256), Stream: g.name(w)}
	if len(w.model.names) == 0 {
		g.create(w, &s)
	} else {
		n := g.r.IntN(g.total)
		for i, k := range drawn {
			if n -= g.weights[i]; n < 0 {
				k.draw(g, w, &s)
				break
			}
		}
	}
	if g.one(g.tick) {
		s.Tick = uint64(g.pick(100, 1500, 30_000, 700_000, 3_600_000, 22_000_000))
		if s.Tick >= 3_600_000 && g.one(2) {
			s = Step{Do: "sweep", Fill: s.Fill, Tick: s.Tick} // its time has come
		}
	}
	if g.one(g.fault) {
		if g.one(3) {
			s = Step{Do: "scan", Stream: g.name(w), Fill: s.Fill, Tick: s.Tick}
		}
		g.trouble(&s)
	}
	if s.Do != "restart" && s.Do != "crash" && s.Do != "grow" && s.Do != "lose" && g.one(g.crash) {
		g.power(&s, 6)
	}
	return s
}

func (g *generator) power(s *Step, most int) {
	s.Crash = &Crash{At: 1 + g.r.IntN(most), Seed: g.r.Uint64N(1 << 30)}
	if g.one(2) {
		s.Crash.Unsynced = g.r.IntN(101)
	}
}

// name is mostly one that is there.
func (g *generator) name(w *world) string {
	if names := w.model.sorted(); len(names) > 0 && !g.one(10) {
		n := names[g.r.IntN(len(names))]
		if n.Bucket == stream.DefaultBucket {
			return n.ID
		}
		return n.String()
	}
	return g.text("a", "b", "c", "d", "logs/a", "logs/b")
}

func (g *generator) create(_ *world, s *Step) {
	s.Do, s.JSON, s.Close = "create", g.one(2), g.one(20)
	s.Stream = g.text("a", "b", "c", "d", "logs/a", "logs/b")
	if g.one(2) {
		s.Size = 1 + g.r.IntN(120)
	}
	g.lifetime(s)
}

func (g *generator) lifetime(s *Step) {
	switch g.r.IntN(12) {
	case 0:
		s.TTL = uint64(g.pick(1, 30, 1000))
	case 1:
		s.For = uint64(g.pick(1, 30, 1000))
	}
}

func (g *generator) fork(w *world, s *Step) {
	g.create(w, s)
	s.Close, s.Source, s.At = false, g.name(w), g.pick(0, 1000, g.r.IntN(1000))
	s.JSON = false
	if g.one(6) {
		s.Off = g.off()
	}
	if g.one(4) {
		s.Sub = 1 + g.r.IntN(3)
	}
}

func (g *generator) append(_ *world, s *Step) {
	s.Do, s.Close, s.JSON = "append", g.one(25), g.one(40)
	if !s.Close || g.one(2) {
		s.Size = 1 + g.r.IntN(g.pick(20, 150, 150, 500))
	}
	if g.one(8) {
		s.Seq = fmt.Sprintf("%03d", g.fill)
		if g.one(6) {
			s.Seq = "000"
		}
	}
	if g.one(3) {
		s.Producer = g.text("p", "q", "r", "s")
		s.Try = g.text("", "", "", "again", "gap", "epoch", "stale")
	}
}

func (g *generator) publish(_ *world, s *Step) {
	s.Do, s.Size, s.At = "publish", 1+g.r.IntN(60), g.pick(0, 1000, g.r.IntN(1001))
	if g.one(6) {
		s.Off = g.off()
	}
}

// sealing takes a step of one of the sealings that are under way, or begins one.
func (g *generator) sealing(w *world, s *Step) {
	s.Slot = g.r.IntN(len(w.sealings))
	for range 4 {
		if w.sealings[s.Slot] == nil {
			s.Slot = g.r.IntN(len(w.sealings))
		}
	}
	b := w.sealings[s.Slot]
	switch {
	case b == nil:
		name := g.unsealed(w)
		if name == "" {
			g.append(w, s)
			return
		}
		s.Do, s.Who, s.Streams = "build", g.r.IntN(2), []string{name}
		for g.one(2) && len(s.Streams) < 4 {
			s.Streams = append(s.Streams, g.name(w))
		}
	case !b.intended:
		s.Do = "intend"
	case !b.uploaded:
		s.Do = "upload"
	default:
		s.Do = "commit"
	}
	if b != nil && g.one(20) {
		s.Do = "abandon"
	}
	s.Stream = ""
}

// sealAll seals some streams in one step.
func (g *generator) sealAll(w *world, s *Step) {
	name := g.unsealed(w)
	if name == "" {
		g.append(w, s)
		return
	}
	s.Do, s.Who, s.Stream, s.Streams = "seal", g.r.IntN(2), "", []string{name}
	for g.one(2) && len(s.Streams) < 4 {
		s.Streams = append(s.Streams, g.name(w))
	}
	s.Slot = g.r.IntN(len(w.sealings))
}

// rewrite begins to write segments again.
func (g *generator) rewrite(w *world, s *Step) {
	s.Do, s.Who, s.Slot = g.text("merge", "copy", "copy"), g.r.IntN(2), g.r.IntN(len(w.sealings))
	s.Streams, s.Stream = []string{s.Stream}, ""
	if s.Do == "merge" {
		for _, n := range w.model.sorted() {
			s.Streams = append(s.Streams, n.String())
		}
	}
}

// unsealed is a stream with bytes to seal, "" if there seems to be none.
func (g *generator) unsealed(w *world) string {
	v := w.hot.View()
	defer v.Close()
	for range 5 {
		name := g.name(w)
		if rec, err := v.Stream(nameOf(name)); err == nil && rec.Unsealed() > 0 {
			return name
		}
	}
	return ""
}

func (g *generator) evict(_ *world, s *Step) {
	s.Do = "evict"
	if g.one(3) {
		s.At = 1 + g.r.IntN(1000)
	}
}

// idle lets all graces pass, at times with an object store that removes nothing, or
// does not say so.
func (g *generator) idle(_ *world, s *Step) {
	if s.Do, s.Stream = "idle", ""; g.one(3) {
		s.Faults = []Fault{{Op: "delete", Kind: g.text("before", "after"), Times: -1}}
	}
}

func (g *generator) reader(w *world, s *Step) {
	s.Slot = g.r.IntN(len(w.readers))
	if s.Do = "resume"; w.readers[s.Slot] == nil {
		s.Do = "pause"
	}
}

// touches is what a step asks of the object store, if it asks for one thing most of all.
var touches = map[string]string{
	"read": "get", "scan": "get", "bootstrap": "get", "snapshot": "get", "resume": "get",
	"upload": "put", "backup": "put", "publish": "put", "pass": "put", "seal": "put", "merge": "get", "copy": "get", "sweep": "delete", "idle": "delete",
}

// trouble draws faults of the object store.
func (g *generator) trouble(s *Step) {
	for {
		f := Fault{Op: g.text("put", "put", "get", "get", "get", "delete", "list"), Skip: g.pick(0, 0, 0, 1, 2), Times: g.pick(0, 0, 1, 3, -1)}
		if likely := touches[s.Do]; likely != "" && !g.one(4) {
			f.Op = likely
		}
		switch f.Op {
		case "put":
			f.Kind = g.text("before", "after", "late", "late", "lost", "torn", "stall")
		case "get":
			f.Kind = g.text("before", "after", "cut", "short", "flip", "flip", "hide", "stall")
		case "list":
			f.Kind = g.text("before", "after", "hide")
		default:
			f.Kind = g.text("before", "after", "stall")
		}
		if f.Kind == "cut" || f.Kind == "short" || f.Kind == "flip" || f.Kind == "torn" {
			f.At = g.r.Int64N(60)
		}
		s.Faults = append(s.Faults, f)
		if !g.one(4) {
			return
		}
	}
}
