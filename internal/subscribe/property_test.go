package subscribe_test

import (
	"flag"
	"fmt"
	"log/slog"
	"testing"

	"firn/internal/subscribe"
)

var (
	seedCount = flag.Int("subscribe.seeds", 200, "random histories of subscriptions to try")
	firstSeed = flag.Uint64("subscribe.seed", 1, "the first of them")
)

// TestRandomHistories tells random stories of streams and subscriptions, with a model
// of who holds what and how far the cursors are. At the end of each everybody does his
// work, and then every cursor must be at the tail of its stream.
func TestRandomHistories(t *testing.T) {
	for i := range *seedCount {
		seed := *firstSeed + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for range 8 {
				w.create()
			}
			for range 4 {
				w.subscribe()
			}
			for range 40 {
				w.step()
			}
			w.finish()
		})
	}
}

// step does one thing at random, at times while streams grow.
func (w *world) step() {
	var beside func()
	if w.chance(4) {
		beside = w.growBeside()
	}
	type action struct {
		weight int
		do     func()
	}
	actions := []action{
		{10, w.create}, {16, w.grow}, {4, w.remove}, {1, w.closeOne}, {2, w.expire},
		{3, w.subscribe}, {1, w.unsubscribe}, {4, w.link}, {3, w.unlink},
		{16, w.claim}, {10, w.ack}, {3, w.release}, {4, w.ackStale}, {8, w.callback},
		{6, w.pass}, {2, w.crash}, {3, w.look},
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	for n, i := w.IntN(total), 0; ; i++ {
		if n -= actions[i].weight; n < 0 {
			actions[i].do()
			break
		}
	}
	if beside != nil {
		beside()
	}
	if w.chance(3) {
		w.look()
	}
}

// finish has everybody do his work: receivers are reliable, wake streams exist, leases
// and delays are over.
func (w *world) finish() {
	w.reliable.Store(true)
	for _, s := range w.subs {
		if s.wakes != "" {
			w.renew(s.scope, s.wakes)
		}
	}
	w.settle() // requests under way may still fail
	for round := 0; ; round++ {
		if round == 20 {
			w.r.t.Fatal("there is still work after 20 rounds")
		}
		w.r.advance(2 * subscribe.MaxLease * 1e6)
		w.settle()
		left := false
		for _, s := range w.subs {
			if s.wakes == "" {
				continue
			}
			w.checkEvent(s)
			for w.claimOf(s) {
				left = true
				w.ackAll(s)
			}
		}
		if !left && round > 1 {
			break
		}
	}
	for _, s := range w.subs {
		w.check(s)
		for path, at := range w.links(s) {
			if rec := w.record(s.scope, path); rec != nil && at != rec.TailOffset() {
				w.r.t.Errorf("%s: %s is acked up to %s, its tail is %s: %+v", s.id, path, at, rec.TailOffset(), w.stored(s))
			}
		}
	}
}

func quiet(o *subscribe.Options) {
	o.Logger = slog.New(slog.DiscardHandler)
	o.Pending, o.Requests, o.RequestsPerHost = 2, 2, 1
}
