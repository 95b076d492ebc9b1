//go:build integration

package soak_test

import (
	"time"

	"firn/internal/faultproxy"
)

// troubles are what befalls the object store, one after another.
var troubles = []struct {
	name  string
	rules []faultproxy.Rule
}{
	{"outage", []faultproxy.Rule{{Times: faultproxy.Always, Do: faultproxy.Drop()}}},
	{"slow link", []faultproxy.Rule{
		{Method: "GET", Every: 5, Times: faultproxy.Always, Do: faultproxy.HangBody(64 << 10)},
		{Times: faultproxy.Always, Do: faultproxy.Slow(300 * time.Millisecond)},
	}},
	{"lost replies", []faultproxy.Rule{{Every: 3, Times: faultproxy.Always, Do: faultproxy.LoseReply()}}},
	{"slow down", []faultproxy.Rule{{Every: 2, Times: faultproxy.Always, Do: faultproxy.Fail(503, "SlowDown")}}},
	{"torn and flipped answers", []faultproxy.Rule{
		{Method: "GET", Every: 3, Times: faultproxy.Always, Do: faultproxy.Cut(1000)},
		{Method: "GET", Every: 4, Times: faultproxy.Always, Do: faultproxy.Flip()},
	}},
}

// trouble plays each trouble for a while, and for as long as it takes to be felt: calls
// to a store that fails become rare. The server is killed within each. After it the store
// is whole until it is used again.
func trouble(store *faultproxy.Proxy, each time.Duration, rest, kill func()) (felt map[string]int) {
	felt = make(map[string]int)
	for _, x := range troubles {
		store.Rule(x.rules...)
		killed := false
		for start := time.Now(); time.Since(start) < each || store.Fired() < 5; {
			rest()
			if !killed && time.Since(start) >= each/2 && store.Fired() > 0 {
				killed = true
				kill()
			}
		}
		felt[x.name] = store.Fired()
		store.Clear()
		store.Forget()
		for start := time.Now(); time.Since(start) < each || len(store.Calls("PUT", "")) < 3; {
			rest()
		}
	}
	return felt
}
