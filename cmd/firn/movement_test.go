//go:build integration

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const asBytes = "Content-Type: application/octet-stream"

// movement is which documented metrics were seen to change.
type movement struct {
	docs  map[string]string
	first map[*server]map[string]float64
	moved map[string]bool
}

// watch scrapes a server. A metric moves when one of its samples differs from the
// first scrape, or comes later and is not zero.
func (m *movement) watch(s *server) map[string]float64 {
	s.t.Helper()
	now := s.samples()
	first := m.first[s]
	if first == nil {
		m.first[s] = now
		return now
	}
	for sample, v := range now {
		name, _, _ := strings.Cut(sample, "{")
		if base, ok := strings.CutSuffix(name, "_count"); ok && strings.HasPrefix(m.docs[base], "histogram") {
			name = base
		}
		if v != first[sample] {
			m.moved[name] = true
		}
	}
	return now
}

// checkTypes compares the types that a scrape tells with the documented ones.
func (m *movement) checkTypes(s *server) {
	s.t.Helper()
	a, err := request("GET", s.admin+"/metrics", "")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (firn_\w+) (\w+)$`).FindAllStringSubmatch(a.body, -1) {
		if want, _, _ := strings.Cut(m.docs[line[1]], " "); line[2] != want {
			s.t.Errorf("%s is a %s, docs/metrics.md says %s", line[1], line[2], want)
		}
	}
}

// until makes a metric move.
func (m *movement) until(s *server, name string, act func()) {
	s.t.Helper()
	until(s.t, name+" moves", func() bool {
		act()
		m.watch(s)
		return m.moved[name]
	})
}

// TestMetricsMove works with two servers until each metric has moved: one on a
// bucket that is slow and away at times, one with much data, whose disk lies.
func TestMetricsMove(t *testing.T) {
	m := &movement{docs: documented(t), first: make(map[*server]map[string]float64), moved: make(map[string]bool)}
	moveCompressed(t, m)
	moveRewritten(t, m)
	moveScrubbed(t, m)
	moveOnBucket(t, m)
	moveOnDisk(t, m)
	for _, name := range slices.Sorted(maps.Keys(m.docs)) {
		if !m.moved[name] {
			t.Errorf("%s has not moved", name)
		}
	}
}

// moveCompressed reads what is worth compressing, more readers at a time than there are
// encoders.
func moveCompressed(t *testing.T, m *movement) {
	s := start(t, t.TempDir())
	m.watch(s)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/text", strings.Repeat("all work and no play ", 50_000), asBytes)
	for _, name := range []string{"firn_http_compressed_answers_total", "firn_http_compression_saved_bytes_total", "firn_http_compression_busy_total"} {
		m.until(s, name, func() {
			var reads sync.WaitGroup
			for range 64 {
				reads.Go(func() { request("GET", s.url+"/ds/demo/text", "", "Accept-Encoding: zstd") })
			}
			reads.Wait()
		})
	}
	s.mustStop()
}

// moveRewritten seals a slow stream often enough for its segments to be merged.
func moveRewritten(t *testing.T, m *movement) {
	s := start(t, t.TempDir(), "--seal.max-age=1s")
	m.watch(s)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/slow", "", asJSON)
	for _, name := range []string{"firn_compactor_rewrites_total", "firn_compactor_rewritten_bytes_total"} {
		m.until(s, name, func() {
			s.must(204, "POST", "/ds/demo/slow", `[1]`, asJSON)
			s.mustFirn("seal", "demo/slow")
		})
	}
	s.mustStop()
}

// moveScrubbed has one object, which is damaged and made whole again, then damaged for
// good.
func moveScrubbed(t *testing.T, m *movement) {
	dir := t.TempDir()
	s := start(t, dir, "--scrub.period=1s")
	m.watch(s)
	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[1]`, asJSON)
	s.mustFirn("seal", "demo/orders")
	s.mustFirn("evict", "demo/orders")
	for _, name := range []string{"firn_scrub_objects_total", "firn_scrub_bytes_total", "firn_scrub_whole_round_seconds"} {
		m.until(s, name, func() {})
	}
	object := objects(t, dir, ".zst")[0]
	flip(t, object, 8)
	for range 2 { // the first reading may have begun before
		read := m.watch(s)["firn_scrub_bytes_total"]
		until(t, "it is read", func() bool { return m.watch(s)["firn_scrub_bytes_total"] != read })
	}
	flip(t, object, 8)
	m.until(s, "firn_scrub_bad_reads_total", func() {})
	flip(t, object, 8)
	m.until(s, "firn_scrub_damaged_objects", func() {})
	s.mustStop()
}

// moveSubscriptions wakes a webhook and claims a pull-wake.
func moveSubscriptions(t *testing.T, m *movement, s *server) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"done":true}`)
	}))
	t.Cleanup(hook.Close)
	s.must(201, "PUT", "/v1/stream/wake", "", asJSON)
	s.must(201, "PUT", "/v1/stream/work", "", asJSON)
	s.must(201, "PUT", "/v1/stream/__ds/subscriptions/hook",
		`{"type":"webhook","streams":["work"],"webhook":{"url":"`+hook.URL+`"}}`, asJSON)
	s.must(201, "PUT", "/v1/stream/__ds/subscriptions/pull",
		`{"type":"pull-wake","streams":["work"],"wake_stream":"wake"}`, asJSON)
	s.must(204, "POST", "/v1/stream/work", `[1]`, asJSON)
	m.until(s, "firn_subscription_attempts_total", func() {})
	m.until(s, "firn_subscription_webhook_seconds", func() {})
	m.until(s, "firn_subscription_claims_total", func() {
		s.do("POST", "/v1/stream/__ds/subscriptions/pull/claim", `{"worker":"w"}`, asJSON)
	})
}

func moveOnBucket(t *testing.T, m *movement) {
	b := newBucket(t)
	s := start(t, t.TempDir(), append(b.args(t), "--hot.max-bytes=64KiB", "--seal.target-bytes=16KiB",
		"--sweep.grace=1s", "--sweep.interval=100ms", "--snapshot.keep-history=0s", "--live.sse-max-age=15s", "--scrub.period=1s")...)
	m.watch(s)

	s.must(201, "PUT", "/ds/demo", "")
	s.must(201, "PUT", "/ds/demo/orders", `[1,2,3]`, asJSON)
	s.must(204, "POST", "/ds/demo/orders", `[4]`, asJSON)
	s.must(200, "GET", "/ds/demo/orders", "")
	s.must(200, "GET", "/ds/demo/orders/bootstrap", "")
	m.until(s, "firn_hot_oldest_unsealed_seconds", func() {})
	go request("GET", s.url+"/ds/demo/orders?offset=now&live=sse", "")
	m.until(s, "firn_http_live_readers", func() {})

	moveSubscriptions(t, m, s)

	s.mustFirn("seal", "demo/orders")
	s.mustFirn("evict", "demo/orders")
	s.must(200, "GET", "/ds/demo/orders", "") // a miss
	s.must(200, "GET", "/ds/demo/orders", "") // a hit

	// A call that takes long is seen under way.
	s.must(201, "PUT", "/ds/demo/slow", `[1]`, asJSON)
	s.mustFirn("seal", "demo/slow")
	s.mustFirn("evict", "demo/slow")
	release := b.holdGets()
	go request("GET", s.url+"/ds/demo/slow", "")
	m.until(s, "firn_object_calls_in_flight", func() {})
	release()

	s.must(204, "DELETE", "/ds/demo/orders", "")
	m.until(s, "firn_compactor_waiting_objects", func() {})
	m.until(s, "firn_object_deleted_total", func() { s.firn("backup") })
	m.until(s, "firn_backup_age_seconds", func() {})

	b.setAway(true)
	m.until(s, "firn_backup_failures_total", func() {
		s.must(201, "PUT", "/ds/demo/away", "", asBytes)
		s.must(204, "DELETE", "/ds/demo/away", "")
		s.firn("backup")
	})
	m.until(s, "firn_scrub_unanswered_objects", func() {})
	record := strings.Repeat("x", 16<<10)
	s.must(201, "PUT", "/ds/demo/much", "", asBytes)
	m.until(s, "firn_hot_refused_appends_total", func() {
		s.do("POST", "/ds/demo/much", record, asBytes)
	})
	m.until(s, "firn_object_breaker_refused_total", func() { s.firn("seal", "demo/much") })
	b.setAway(false)
	for _, name := range []string{"firn_backup_objects_total", "firn_backup_bytes_total"} {
		m.until(s, name, func() { s.firn("backup") })
	}
	m.checkTypes(s)
	s.mustStop()
}

// holdGets makes GETs wait until the returned function is called.
func (b *bucket) holdGets() (release func()) {
	hold := make(chan struct{})
	b.rw.Lock()
	b.hold = hold
	b.rw.Unlock()
	return func() {
		b.rw.Lock()
		b.hold = nil
		b.rw.Unlock()
		close(hold)
	}
}

func moveOnDisk(t *testing.T, m *movement) {
	const size = 16 << 20 // of an append: more than all memtables
	dir := t.TempDir()
	s := start(t, dir, "--hot.max-bytes=64MiB", "--hot.hard-bytes=1GiB", "--hot.cache-bytes=1MiB",
		"--cache.max-bytes=1MiB", "--read.max-bytes=1MiB", "--seal.max-age=1h", "--seal.target-bytes=4MiB", "--sweep.interval=1d")
	m.watch(s)
	random := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(random)
	noise := string(random)
	s.must(201, "PUT", "/ds/demo", "")
	fill := func(name string) {
		t.Helper()
		s.must(201, "PUT", "/ds/demo/"+name, noise, asBytes)
		m.watch(s)
	}
	fill("one")
	fill("two")
	fill("three")
	m.until(s, "firn_hot_write_stalls_total", func() {
		var posts sync.WaitGroup
		for range 4 {
			posts.Go(func() { request("POST", s.url+"/ds/demo/three", noise[:4<<20], asBytes) })
		}
		posts.Wait()
	})
	m.until(s, "firn_hot_queue_commands", func() {
		for i := range 64 {
			go request("POST", s.url+"/ds/demo/one", fmt.Sprint(i), asBytes)
		}
	})
	for _, name := range []string{"one", "two", "three"} {
		s.mustFirn("seal", "demo/"+name)
		s.mustFirn("evict", "demo/"+name)
	}
	m.until(s, "firn_compactor_reclaims_total", func() {})
	s.mustFirn("stream", "cat", "demo/one") // read on, it is fetched ahead
	m.watch(s)

	// The hot tier is damaged, which readers, the compactor and Pebble find. It is at
	// the beginning of a value, because Pebble tries each bit of a block to see
	// whether it is the one that flipped. It is less than a target, so nothing seals
	// it before.
	s.must(201, "PUT", "/ds/demo/four", noise[:3<<20], asBytes)
	m.until(s, "firn_hot_corruptions_total", func() {
		for _, name := range objects(t, dir+"/hot", ".sst") {
			if table, err := os.ReadFile(name); err == nil { // else it is gone since
				flip(t, name, bytes.Index(table, random[3<<18:3<<18+64]))
			}
		}
		s.firn("stream", "cat", "demo/four")
	})
	s.must(204, "POST", "/ds/demo/four", noise[3<<20:5<<20], asBytes)
	m.until(s, "firn_compactor_stuck_streams", func() {})
	s.must(201, "PUT", "/ds/demo/five", "", asBytes)
	m.until(s, "firn_hot_background_errors_total", func() { s.must(204, "POST", "/ds/demo/five", noise[:1<<20], asBytes) })

	// Objects are damaged, then gone.
	found := objects(t, dir+"/cold", ".zst")
	for _, name := range found {
		flip(t, name, 8)
	}
	s.must(503, "GET", "/ds/demo/two", "")
	for _, name := range found {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	s.must(503, "GET", "/ds/demo/three", "")
	m.watch(s)
	s.stop()
}

// flip changes a bit of a file, unless the offset is negative.
func flip(t *testing.T, name string, offset int) {
	t.Helper()
	if offset < 0 {
		return
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return // gone since
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], int64(offset)); err != nil {
		t.Error(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, int64(offset)); err != nil {
		t.Error(err)
	}
}
