package scrub_test

import (
	"context"
	"sync"
	"testing"

	"firn/internal/scrub"
)

// Run ends with its context and remembers how far it is; whoever asks meanwhile is
// answered.
func TestRunBesideOthers(t *testing.T) {
	r := newRig(t, scrub.Options{})
	key := r.sealed("a")
	r.sealed("b")
	r.evict("a", "b")
	r.put(key, nil)
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- r.scrub.Run(ctx) }()
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			for r.scrub.Status().Missing == 0 {
				r.scrub.Suspect(key)
				r.scrub.Recheck()
			}
		})
	}
	others.Wait()
	cancel()
	r.must(<-done)
	v := r.hot.View()
	m, err := v.Mark()
	v.Close()
	if err != nil || m.Began == 0 || m.Whole == 0 {
		t.Errorf("mark is %+v, %v", m, err)
	}
	r.damaged(key)
}
