package api_test

import (
	"testing"

	"firn/internal/blob/mem"
	"firn/tier"
	"firn/tier/cold"
	"firn/tier/hot"
)

// newStore opens an empty store whose cold tier is in memory.
func newStore(t testing.TB) *tier.Store {
	t.Helper()
	h, err := hot.Open(t.TempDir(), hot.Options{MemTableBytes: 1 << 20, Fatal: func(msg string) { panic(msg) }})
	if err != nil {
		t.Fatal(err)
	}
	c, err := cold.Open(mem.New(mem.Options{}), cold.Options{StoreID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return tier.New(tier.Options{Hot: h, Cold: c, SpoolDir: t.TempDir()})
}
