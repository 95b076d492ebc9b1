package api

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestNextCursor(t *testing.T) {
	now := cursorEpoch.Add(1000*cursorInterval + 5*time.Second)
	tests := []struct {
		name   string
		now    time.Time
		sent   string
		random uint64
		want   int64
		err    error
	}{
		{name: "none", now: now, want: 1000},
		{name: "older", now: now, sent: "999", want: 1000},
		{name: "garbage", now: now, sent: "abc", want: 1000},
		{name: "negative", now: now, sent: "-1", want: 1000},
		{name: "same, least jitter", now: now, sent: "1000", random: 0, want: 1001},
		{name: "same, one interval", now: now, sent: "1000", random: 19, want: 1001},
		{name: "same, more than one interval", now: now, sent: "1000", random: 20, want: 1002},
		{name: "same, most jitter", now: now, sent: "1000", random: 3599, want: 1180},
		{name: "ahead", now: now, sent: "5000", random: 0, want: 5001},
		{name: "largest", now: now, sent: "999999999999999999", random: 3599, want: 1000000000000000179},
		{name: "too large", now: now, sent: "9999999999999999999", err: errCursor},
		{name: "before the epoch", now: cursorEpoch.Add(-time.Hour), want: 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			random := []byte{0, 0, 0, 0, 0, 0, byte(tt.random >> 8), byte(tt.random)}
			got, err := nextCursor(tt.now, tt.sent, bytes.NewReader(random))
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("got %d, %v, want %d, %v", got, err, tt.want, tt.err)
			}
		})
	}
}
