package compactor

import (
	"testing"
	"time"

	"firn/tier/hot"
)

func TestAgedAtTheEdge(t *testing.T) {
	p := Policy{MaxAge: time.Second}
	if p.aged(9001, 10_000) || !p.aged(9000, 10_000) {
		t.Error("bytes are old enough exactly at MaxAge")
	}
}

func TestShortIsWhatEvictionCannotGive(t *testing.T) {
	p := Policy{Budget: 100}
	for _, tt := range []struct{ hot, unsealed, want uint64 }{
		{100, 100, 0}, // within the budget
		{150, 100, 0}, // 50 sealed bytes can go
		{150, 101, 1},
		{150, 150, 50},
	} {
		if got := p.short(tt.hot, tt.unsealed); got != tt.want {
			t.Errorf("hot %d, unsealed %d: short by %d, want %d", tt.hot, tt.unsealed, got, tt.want)
		}
	}
}

func TestEvictTakesTheOldestAndNoMoreThanTheSurplus(t *testing.T) {
	held := []hot.Held{{To: 50, Ms: 1000}, {To: 50, Ms: 2000}, {To: 50, Ms: 3000}}
	for name, tt := range map[string]struct {
		p        Policy
		hotBytes uint64
		want     int
	}{
		"within the budget":    {Policy{Budget: 100, HardBytes: 400}, 100, 0},
		"one byte over":        {Policy{Budget: 100, HardBytes: 400}, 101, 1},
		"51 over take two":     {Policy{Budget: 100, HardBytes: 400}, 151, 2},
		"young ones stay":      {Policy{Budget: 100, HardBytes: 400, MinAge: 2500 * time.Millisecond}, 201, 1},
		"unless it is urgent":  {Policy{Budget: 100, HardBytes: 400, MinAge: time.Hour}, 251, 3},
		"half-way is not over": {Policy{Budget: 100, HardBytes: 400, MinAge: time.Hour}, 250, 0},
	} {
		if got := len(tt.p.evict(held, tt.hotBytes, 4000)); got != tt.want {
			t.Errorf("%s: %d segments, want %d", name, got, tt.want)
		}
	}
}
