package trials_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestScale(t *testing.T) {
	t.Run("SC-f08", appendsOverManyStreams)
	t.Run("SC-744", burstOfNewStreams)
}

// connections is how many clients there are at a time.
const connections = 64

// burst does n requests over all connections. It returns how long they took, all
// together and the slowest one.
func (s *server) burst(n, status int, request func(i int) (method, path, body string, header []string)) (all, slowest time.Duration) {
	s.t.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	longest := make([]time.Duration, connections)
	begun := time.Now()
	for w := range connections {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				method, path, body, header := request(int(i))
				at := time.Now()
				a, err := s.try(method, path, body, header...)
				if err != nil || a.status != status {
					s.t.Errorf("%s %s: %d %s, %v", method, path, a.status, a.body, err)
					return
				}
				longest[w] = max(longest[w], time.Since(at))
			}
		})
	}
	wg.Wait()
	return time.Since(begun), slices.Max(longest)
}

// The same number of appends takes about the same time, whatever the number of streams
// that they go to.
func appendsOverManyStreams(t *testing.T) {
	s := serve(t)
	appends := scaled(6000, 200_000)
	text := []string{"Content-Type: text/plain"}
	rate := map[int]float64{}
	few, many := 10, scaled(3000, 500_000)
	for _, streams := range []int{few, many} {
		path := func(i int) string { return fmt.Sprintf("/ds/trial/%d-%d", streams, i%streams) }
		s.burst(streams, 201, func(i int) (string, string, string, []string) { return "PUT", path(i), "", text })
		all, slowest := s.burst(appends, 204, func(i int) (string, string, string, []string) {
			return "POST", path(i), "0123456789012345678901234567890123456789012345678901234567890123", text
		})
		rate[streams] = float64(appends) / all.Seconds()
		t.Logf("%d streams: %.0f appends/s, the slowest took %s", streams, rate[streams], slowest)
		if slowest > 2*time.Second {
			t.Errorf("an append took %s with %d streams", slowest, streams)
		}
	}
	// A short run on a busy machine is not exact.
	if rate[many] < rate[few]/float64(scaled(4, 2)) {
		t.Errorf("%.0f appends/s to %d streams, %.0f to %d", rate[many], many, rate[few], few)
	}
}

// New streams, forks and deletions share commits as appends do.
func burstOfNewStreams(t *testing.T) {
	s := serve(t)
	const n = 1000
	text := []string{"Content-Type: text/plain"}
	path := func(kind string, i int) string { return fmt.Sprintf("/ds/trial/%s%d", kind, i) }
	s.create("/ds/trial/source", "text/plain", "x")
	appends, _ := s.burst(n, 204, func(int) (string, string, string, []string) { return "POST", "/ds/trial/source", "x", text })
	for _, b := range []struct {
		what    string
		status  int
		request func(i int) (string, string, string, []string)
	}{
		{"creations", 201, func(i int) (string, string, string, []string) { return "PUT", path("s", i), "", text }},
		{"forks", 201, func(i int) (string, string, string, []string) {
			return "PUT", path("f", i), "", []string{"Stream-Forked-From: /ds/trial/source"}
		}},
		{"deletions", 204, func(i int) (string, string, string, []string) { return "DELETE", path("s", i), "", nil }},
	} {
		took, _ := s.burst(n, b.status, b.request)
		t.Logf("%d appends took %s, %s %s", n, appends, b.what, took)
		if took > 4*appends+time.Second {
			t.Errorf("%d %s took %s, as many appends %s", n, b.what, took, appends)
		}
	}
}
