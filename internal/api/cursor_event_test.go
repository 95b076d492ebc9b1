package api_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/api"
)

// The cursors of one event stream never go back, though the clock does, and follow it
// when it has caught up (B§10.1).
func TestCursorsOfAnEventStreamNeverGoBack(t *testing.T) {
	var interval atomic.Int64
	interval.Store(1000)
	c, _ := connect(t, api.Options{Clock: func() time.Time {
		return at.Add(time.Duration(interval.Load()-1000) * 20 * time.Second)
	}})
	c.create("/ds/trial/s", "text/plain", "")
	e := c.subscribe("/ds/trial/s?live=sse&offset=-1&cursor=1200")
	first := e.control()
	if first.StreamCursor == nil {
		t.Fatalf("got %+v", first)
	}
	last, err := strconv.ParseInt(*first.StreamCursor, 10, 64)
	if err != nil || last <= 1200 || last > 1380 {
		t.Fatalf("the first cursor after 1200 is %d, %v", last, err)
	}
	for _, step := range []struct{ now, want int64 }{{1001, last}, {500, last}, {last, last}, {last + 1, last + 1}, {1, last + 1}, {last + 90, last + 90}} {
		interval.Store(step.now)
		c.append("/ds/trial/s", "text/plain", "x")
		if _, at := e.data(); at.StreamCursor == nil || *at.StreamCursor != strconv.FormatInt(step.want, 10) {
			t.Errorf("in interval %d: %+v, want the cursor %d", step.now, at, step.want)
		}
	}
}
