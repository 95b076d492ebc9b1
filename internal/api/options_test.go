package api

import (
	"testing"
	"time"
)

// TestDefaultPatience has the settings that nobody has changed; that they are kept to is
// in the tests of live reads, with shorter ones (B§5.7, B§5.8).
func TestDefaultPatience(t *testing.T) {
	o := Options{}.withDefaults()
	for name, tt := range map[string]struct{ got, want time.Duration }{
		"long-poll":           {o.LongPollTimeout, 25 * time.Second},
		"heartbeat of events": {o.SSEHeartbeat, 15 * time.Second},
		"age of events":       {o.SSEMaxAge, time.Minute},
		"stalled reader":      {o.WriteStallTimeout, time.Minute},
		"stalled body":        {o.BodyIdleTimeout, 30 * time.Second},
		"header":              {o.HeaderTimeout, 10 * time.Second},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}
