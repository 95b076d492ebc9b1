package sim

import (
	"context"
	"errors"
	"slices"
)

// Shrink makes a history that fails shorter and simpler, by at most budget runs, and
// returns the failure of the shortest one that still fails.
func Shrink(ctx context.Context, o Options, f *Failure, budget int) *Failure {
	s := shrinker{ctx: ctx, opts: o, best: f, budget: budget}
	for before := ""; before != s.best.Script.String() && s.budget > 0; {
		before = s.best.Script.String()
		s.drop()
		s.simplify()
	}
	return s.best
}

type shrinker struct {
	ctx    context.Context
	opts   Options
	best   *Failure
	budget int
}

// try plays a script and keeps it if it fails.
func (s *shrinker) try(steps []Step) bool {
	if s.budget == 0 || s.ctx.Err() != nil {
		return false
	}
	s.budget--
	o := s.opts
	o.Script = &Script{World: s.best.Script.World, Steps: steps}
	var f *Failure
	if errors.As(Run(s.ctx, o), &f) {
		s.best = f
		return true
	}
	return false
}

// drop takes steps out, many at a time at first.
func (s *shrinker) drop() {
	for n := max(len(s.best.Script.Steps)/2, 1); ; n /= 2 {
		for at := 0; at < len(s.best.Script.Steps); {
			steps := s.best.Script.Steps
			end := min(at+n, len(steps))
			if !s.try(slices.Concat(steps[:at], steps[end:])) {
				at = end
			}
		}
		if n <= 1 {
			return
		}
	}
}

// simplifications are tried on each step.
var simplifications = []func(*Step){
	func(s *Step) { s.Crash = nil },
	func(s *Step) { s.Faults = nil },
	func(s *Step) {
		if len(s.Faults) > 1 {
			s.Faults = s.Faults[1:]
		}
	},
	func(s *Step) {
		if len(s.Faults) > 1 {
			s.Faults = s.Faults[:1]
		}
	},
	func(s *Step) { s.Tick = 0 },
	func(s *Step) {
		if s.Crash != nil {
			c := *s.Crash
			c.Unsynced, c.Seed = 0, 0
			s.Crash = &c
		}
	},
	func(s *Step) { s.TTL, s.For = 0, 0 },
	func(s *Step) { s.Producer, s.Try, s.Seq = "", "", "" },
	func(s *Step) { s.Close = false },
	func(s *Step) { s.JSON = false },
	func(s *Step) { s.Off, s.Sub = 0, 0 },
	func(s *Step) { s.Size /= 2 },
	func(s *Step) {
		if len(s.Streams) > 1 {
			s.Streams = s.Streams[:len(s.Streams)-1]
		}
	},
	func(s *Step) { s.Who, s.Slot = 0, 0 },
	func(s *Step) { s.Fill = 0 },
}

func (s *shrinker) simplify() {
	for i := 0; i < len(s.best.Script.Steps); i++ {
		for _, change := range simplifications {
			if i >= len(s.best.Script.Steps) {
				return
			}
			was := s.best.Script.Steps[i]
			step := was
			change(&step)
			if line(step) == line(was) {
				continue
			}
			steps := slices.Clone(s.best.Script.Steps)
			steps[i] = step
			s.try(steps)
		}
	}
}
