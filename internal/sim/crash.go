package sim

import (
	"context"
	"fmt"

	"firn/tier/hot"
)

// watch returns how a reader looks at the stream of a step right before a crash. What
// it is shown must last.
func (w *world) watch(s Step) func(*hot.View) *hot.Record {
	switch s.Do {
	case "create", "append":
	default:
		return nil
	}
	return func(v *hot.View) *hot.Record {
		rec, err := v.Stream(nameOf(s.Stream))
		if err != nil {
			return nil
		}
		return rec
	}
}

// afterCrash leaves a process that died during a step, or right after it.
func (w *world) afterCrash(ctx context.Context, s Step, before *model, last *lastMoment) error {
	after, answered := w.model, !w.disk.Disarm()
	if answered {
		w.die(last, w.disk, s.Crash, nil)
	} else {
		<-last.done // it may have begun in the background of the store
	}
	if err := w.stop(); err != nil {
		return err
	}
	w.disk = last.disk
	w.model = after
	if err := w.restart(ctx, nil, nil); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	if !answered && changes(s.Do) {
		before.restarted()
		if err := w.crashed(ctx, s, before, after, last); err != nil {
			return fmt.Errorf("after the crash: %w", err)
		}
	}
	if err := w.check(ctx, s); err != nil {
		return fmt.Errorf("after the crash: %w", err)
	}
	return nil
}

// changes reports whether a step changes what the model has.
func changes(do string) bool {
	switch do {
	case "create", "append", "delete", "publish", "bucket", "unbucket":
		return true
	}
	return false
}

// crashNow cuts the power between two steps. Another crash may come while the server
// starts again.
func (w *world) crashNow(ctx context.Context, s Step) error {
	c := s.Crash
	if c == nil {
		c = &Crash{}
	}
	last := &lastMoment{done: make(chan struct{})}
	w.die(last, w.disk, c, nil)
	if err := w.stop(); err != nil {
		return err
	}
	w.disk = last.disk
	return w.again(ctx, s)
}

// restartNow stops the server in order and starts it again.
func (w *world) restartNow(ctx context.Context, s Step) error {
	if err := w.stop(); err != nil {
		return err
	}
	return w.again(ctx, s)
}

func (w *world) again(ctx context.Context, s Step) error {
	w.process = nil
	c := s.Crash
	if c != nil && c.At == 0 {
		c = nil
	}
	if err := limited(ctx, s, func(ctx context.Context) error { return w.restart(ctx, s.Faults, c) }); err != nil {
		return fmt.Errorf("%s: %w", s.Do, err)
	}
	return w.check(ctx, s)
}
