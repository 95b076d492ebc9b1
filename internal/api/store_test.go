package api_test

import (
	"testing"

	"firn/internal/blob"
	"firn/internal/blob/mem"
	"firn/internal/subscribe"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// newStore opens an empty store whose cold tier is in memory.
func newStore(t testing.TB) *tier.Store {
	t.Helper()
	s, _ := newTiers(t)
	return s
}

// newSubscribed opens an empty store with subscriptions.
func newSubscribed(t *testing.T) (*tier.Store, *subscribe.Engine) {
	t.Helper()
	s, h := newTiers(t)
	return s, newEngine(t, subscribe.Options{Hot: h})
}

func newTiers(t testing.TB) (*tier.Store, *hot.Store) {
	t.Helper()
	return newTiersOver(t, mem.New(mem.Options{}))
}

// newTiersOver opens an empty store whose cold tier is in a bucket.
func newTiersOver(t testing.TB, bucket blob.Store) (*tier.Store, *hot.Store) {
	t.Helper()
	h, err := hot.Open(t.TempDir(), hot.Options{MemTableBytes: 1 << 20, Fatal: func(msg string) { panic(msg) }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cold.Open(bucket, cold.Options{StoreID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return tier.New(tier.Options{Hot: h, Cold: c, SpoolDir: t.TempDir()}), h
}
