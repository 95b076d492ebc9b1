package sim

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"
)

// Options configure a run. The zero Options draw one short history from seed 0.
type Options struct {
	Seed uint64
	// Steps is how many steps are drawn (default 40). Script, if there is one, is
	// played instead of them.
	Steps  int
	Script *Script
	// Fault is planted in firn.
	Fault Planted
	// Encoders may be shared by runs.
	Encoders *Encoders
	// Done, if set, is told what was done, so that a generator which only draws what is
	// refused is noticed.
	Done func(what string)
}

// Failure is a history in which the store broke a rule. Script ends with the step that
// showed it, or with the last one if the end did.
type Failure struct {
	Script Script
	Err    error
}

// Error names the seed and prints the script.
func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d: %v\nscript:\n%s", f.Script.World.Seed, len(f.Script.Steps), f.Err, f.Script)
}

// Unwrap returns Err.
func (f *Failure) Unwrap() error { return f.Err }

// Run plays one history. Every error but those of the options is a [*Failure].
func Run(ctx context.Context, o Options) error {
	g := newGenerator(o.Seed)
	played := Script{World: g.world()}
	next := func(w *world) (Step, bool) {
		steps := o.Steps
		if steps == 0 {
			steps = 40
		}
		return g.step(w), len(played.Steps) < steps
	}
	if o.Script != nil {
		played.World = o.Script.World
		next = func(*world) (Step, bool) {
			if len(played.Steps) == len(o.Script.Steps) {
				return Step{}, false
			}
			return o.Script.Steps[len(played.Steps)], true
		}
	}
	w, err := newWorld(played.World, o)
	if err != nil {
		return err
	}
	if err := w.play(ctx, &played, next); err != nil {
		return &Failure{Script: played, Err: err}
	}
	return nil
}

func (w *world) play(ctx context.Context, played *Script, next func(*world) (Step, bool)) (err error) {
	if err := w.open(ctx, nil); err != nil {
		return err
	}
	defer func() {
		// What gave up or panicked may hold locks for ever: it is left as it is.
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		} else if w.fault.Load() == nil {
			if cerr := w.stop(); err == nil {
				err = cerr
			}
		}
	}()
	for {
		s, ok := next(w)
		if !ok {
			break
		}
		played.Steps = append(played.Steps, s)
		if err := w.step(ctx, s); err != nil {
			return err
		}
	}
	if err := w.check(ctx, Step{}); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := w.restartNow(ctx, Step{Do: "restart"}); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := w.finish(ctx); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	return w.settle(ctx)
}

// patience is how long a request waits for an object store that stalls, in true time.
const patience = 2 * time.Millisecond

// steps are all that a script can say.
var steps = map[string]func(context.Context, *world, Step) error{
	"create": doCreate, "append": doAppend, "delete": doDelete, "bucket": doBucket, "unbucket": doUnbucket,
	"publish": doPublish, "read": doRead, "scan": doScan, "bootstrap": doBootstrap, "snapshot": doSnapshot,
	"build": doBuild, "merge": doMerge, "copy": doCopy, "seal": doSeal, "grow": doGrow, "intend": doIntend, "upload": doUpload, "commit": doCommit, "abandon": doAbandon,
	"evict": doEvict, "trim": doTrim, "sweep": doSweep, "pass": doPass,
	"idle": doIdle, "pause": doPause, "resume": doResume, "land": doLand, "backup": doBackup, "lose": doLose, "keep": doKeep, "stale": doStale,
}

func (w *world) step(ctx context.Context, s Step) error {
	if err := w.tick(s.Tick); err != nil {
		return err
	}
	if err := w.observe(ctx, s); err != nil {
		return err
	}
	switch s.Do {
	case "restart", "crash":
		w.tellStep(s)
	}
	switch s.Do {
	case "restart":
		return w.restartNow(ctx, s)
	case "crash":
		return w.crashNow(ctx, s)
	}
	do := steps[s.Do]
	if do == nil {
		return fmt.Errorf("unknown step %q", s.Do)
	}
	w.tellStep(s)
	before := w.model.clone()
	last := w.arm(s.Crash, w.watch(s))
	w.blobs.begin(s.Faults)
	err := limited(ctx, s, func(ctx context.Context) error { return do(ctx, w, s) })
	if w.process == nil {
		return err // it could not be started again
	}
	w.blobs.end()
	if serr := w.settle(ctx); err == nil {
		err = serr
	}
	if err != nil {
		return err
	}
	if s.Crash != nil {
		if err := w.afterCrash(ctx, s, before, last); err != nil {
			return err
		}
	}
	w.remember()
	if s.Crash == nil {
		return w.look(ctx, s)
	}
	return nil
}

// tell tells what was done.
func (w *world) tell(what string) {
	if w.opts.Done != nil {
		w.opts.Done(what)
	}
}

func (w *world) tellStep(s Step) {
	w.tell(s.Do)
	if s.Crash != nil {
		w.tell(s.Do + " with a crash")
	}
	for _, f := range s.Faults {
		w.tell(f.Op + " " + f.Kind)
	}
}

// limited bounds how long a step waits for a store that stalls.
func limited(ctx context.Context, s Step, do func(context.Context) error) error {
	for _, f := range s.Faults {
		if f.Kind == "stall" {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			return do(ctx)
		}
	}
	return do(ctx)
}

// Steps returns the names of all steps.
func Steps() []string {
	return append(slices.Sorted(maps.Keys(steps)), "restart", "crash")
}
