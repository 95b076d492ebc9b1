package trials_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"firn/compactor"
	"firn/internal/blob/fault"
	"firn/tier"
	"firn/tier/cold"
)

func TestLifetimes(t *testing.T) {
	t.Run("TL-585", expiredNameIsFree)
	t.Run("TL-df1", sealOfADeletedStream)
	t.Run("TL-435", deletionBesideAColdRead)
	t.Run("TL-389", lifetimesOverADowntime)
	t.Run("TL-2b8", clockThatWasSet)
	t.Run("TL-a4d", oddLifetimes)
	t.Run("TL-32c", readsWriteLittle)
}

func expiredNameIsFree(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	old := s.create(path, "text/plain", strings.Repeat("old", scaled(100_000, 1_700_000)), "Stream-TTL: 2")
	s.seal(path)
	garbage := s.segments()
	if len(garbage) == 0 {
		t.Fatal("nothing was sealed")
	}
	s.clock.add(4 * time.Second)
	s.create(path, "application/json", "[1]")
	s.append(path, "application/json", `"new"`)
	check := func(when string) {
		t.Helper()
		same(t, when, s.read(path, "-1"), `[1,"new"]`)
		s.want(400, "GET", path+"?offset="+old, "")
		s.want(400, "GET", path+"?offset="+at(old, 5), "")
	}
	check("at once")
	s.restart()
	check("after a restart")
	s.seal(path)
	check("sealed")
	s.collect()
	check("swept")
	left := strings.Join(s.segments(), "\n")
	for _, key := range garbage {
		if strings.Contains(left, key) {
			t.Errorf("%s is still there", key)
		}
	}
}

func sealOfADeletedStream(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "old old old")
	id := s.incarnation(path)
	gate := make(chan struct{})
	s.faults.Script(fault.Fault{Op: fault.Put, Kind: fault.Stall, Gate: gate, Key: "stream=s"})
	puts := s.faults.Calls(fault.Put)
	sealed := make(chan error, 1)
	go func() { sealed <- s.compactor.SealStream(t.Context(), id) }()
	eventually(t, "the upload has begun", func() bool { return s.faults.Calls(fault.Put) > puts })
	s.want(204, "DELETE", path, "")
	s.create(path, "text/plain", "new")
	s.seal(path)
	close(gate)
	if err := <-sealed; err == nil {
		t.Error("the deleted stream was sealed")
	}
	s.holds(path, "new")
	s.restart()
	s.holds(path, "new")
	if n := len(s.segments()); n != 2 {
		t.Errorf("%d segments before the sweep", n)
	}
	s.collect()
	if left := s.segments(); len(left) != 1 || strings.Contains(left[0], id.String()) {
		t.Errorf("left are %q", left)
	}
	s.holds(path, "new")
}

// deletionBesideAColdRead removes the objects of a stream while one read of it waits
// for the next piece (20 MiB with -full).
func deletionBesideAColdRead(t *testing.T) {
	s := serve(t, func(o *options) {
		o.tier, o.policy = tier.Options{ReadBytes: 32 << 20}, compactor.Policy{Target: 256 << 10}
		o.cold = cold.Options{FetchBytes: 64 << 10, ReadAhead: -1}
	})
	const path = "/ds/trial/s"
	var content strings.Builder
	for i := range scaled(20_000, 400_000) {
		fmt.Fprintf(&content, "%d: %x %x\n", i, i*7919, i*104729*7919)
	}
	s.create(path, "text/plain", "")
	for all := content.String(); all != ""; {
		n := min(len(all), 128<<10)
		s.append(path, "text/plain", all[:n])
		all = all[n:]
	}
	s.seal(path)
	gate := make(chan struct{})
	s.faults.Script(fault.Fault{Op: fault.Get, Key: "stream=s", Skip: 2, Kind: fault.Stall, Gate: gate})
	gets := s.faults.Calls(fault.Get)
	type result struct {
		answer
		err error
	}
	read := make(chan result, 1)
	go func() {
		a, err := s.try("GET", path, "")
		read <- result{a, err}
	}()
	eventually(t, "the read waits", func() bool { return s.faults.Calls(fault.Get) >= gets+3 })
	s.want(204, "DELETE", path, "")
	s.collect()
	if left := s.segments(); len(left) > 0 {
		t.Fatalf("objects are left: %q", left)
	}
	close(gate)
	r := <-read
	switch {
	case r.err != nil: // broken off
	case r.status == 200:
		same(t, "read", r.body, content.String())
	case r.status != 404 && r.status != 503:
		t.Errorf("got %d %s", r.status, r.body)
	}
	s.want(404, "GET", path, "")
}

func lifetimesOverADowntime(t *testing.T) {
	s := serve(t)
	s.create("/ds/trial/short", "text/plain", "x", "Stream-TTL: 10")
	s.create("/ds/trial/long", "text/plain", "x", "Stream-TTL: 60")
	s.create("/ds/trial/dated", "text/plain", "x", "Stream-Expires-At: "+s.clock.now().Add(10*time.Second).UTC().Format(time.RFC3339Nano))
	s.create("/ds/trial/later", "text/plain", "x", "Stream-Expires-At: "+s.clock.now().Add(time.Hour).UTC().Format(time.RFC3339Nano))
	s.clock.add(3 * time.Second)
	s.want(200, "HEAD", "/ds/trial/short", "")
	s.stop()
	s.clock.add(17 * time.Second)
	s.start()
	s.want(404, "HEAD", "/ds/trial/short", "")
	s.want(404, "HEAD", "/ds/trial/dated", "")
	s.want(200, "HEAD", "/ds/trial/long", "")
	s.want(200, "HEAD", "/ds/trial/later", "")
	s.clock.add(35 * time.Second)
	s.want(200, "HEAD", "/ds/trial/long", "")
	s.clock.add(14 * time.Second) // 69 s: a TTL of 60 s and an eighth, which a crash may add
	s.want(404, "HEAD", "/ds/trial/long", "")
	s.want(200, "HEAD", "/ds/trial/later", "")
	// All that were restored had their deadline ahead: nobody else went.
	if ids, _ := s.list("/ds/trial/streams"); len(ids) != 1 {
		t.Errorf("left are %q", ids)
	}
}

// clockThatWasSet is about what a start finds: while the server runs it goes by the
// monotonic clock, and to show that one would have to set the machine's time.
func clockThatWasSet(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create("/ds/trial/used", "text/plain", "x", "Stream-TTL: 3600")
	first := s.create(path, "text/plain", "one")
	s.want(204, "DELETE", path, "")
	s.stop()
	s.clock.add(-time.Hour)
	s.start()
	second := s.create(path, "text/plain", "two")
	if second[:16] <= first[:16] {
		t.Errorf("life %s after %s", second, first)
	}
	s.want(400, "GET", path+"?offset="+first, "")
	s.holds(path, "two")
	s.want(200, "GET", "/ds/trial/used", "")
	s.clock.add(2*time.Hour + 10*time.Minute) // TTL, the hour it was set back, and an eighth
	s.want(404, "GET", "/ds/trial/used", "")

	// The time zone has no say in dates.
	p := spawn(t)
	p.env = append(p.env, "TZ=Asia/Tokyo")
	date := time.Now().Add(time.Hour).In(time.FixedZone("", -5*3600)).Format(time.RFC3339)
	p.create(path, "text/plain", "x", "Stream-Expires-At: "+date)
	before := p.want(200, "HEAD", path, "").header.Get("Stream-Expires-At")
	p.kill()
	p.start()
	if got := p.want(200, "HEAD", path, "").header.Get("Stream-Expires-At"); got != before {
		t.Errorf("expires at %s, was %s", got, before)
	}
	then, err := time.Parse(time.RFC3339, before)
	given, gerr := time.Parse(time.RFC3339, date)
	if err != nil || gerr != nil || !then.Equal(given) {
		t.Errorf("%s became %s", date, before)
	}
}

// oddLifetimes has what internal/api's TestParseLifetime leaves: what comes of the
// requests.
func oddLifetimes(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	for _, header := range []string{"Stream-TTL: 00", "Stream-TTL: +5", "Stream-TTL: 5.0", "Stream-TTL: 1e3", "Stream-TTL: -1",
		"Stream-TTL: 99999999999999999999", "Stream-TTL: ", "Stream-Expires-At: 2030-01-02T23:59:60Z", "Stream-Expires-At: 2030-01-02T03:04:05"} {
		s.want(400, "PUT", path, "x", header)
	}
	s.want(400, "PUT", path, "x", "Stream-TTL: 5", "Stream-Expires-At: 2090-01-02T03:04:05Z")
	s.want(404, "HEAD", path, "")
	for _, header := range []string{"Stream-TTL: 0", "Stream-Expires-At: 2001-01-02T03:04:05Z", "Stream-Expires-At: 1901-01-02T03:04:05Z"} {
		s.want(201, "PUT", path, "x", header)
		s.want(404, "GET", path, "")
		s.want(404, "HEAD", path, "")
	}
	s.want(201, "PUT", path, "x", "Stream-Expires-At: 9999-12-31T23:59:59+02:00")
	if got := s.want(200, "HEAD", path, "").header.Get("Stream-Expires-At"); got != "9999-12-31T21:59:59.000Z" {
		t.Errorf("got %q", got)
	}
}

// readsWriteLittle reads 2000 times (300,000 with -full) within a second of the TTL.
func readsWriteLittle(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "x", "Stream-TTL: 3600")
	before := s.metric("firn_hot_batch_commands")
	for range scaled(2000, 300_000) {
		s.want(200, "GET", path, "")
	}
	if n := s.metric("firn_hot_batch_commands") - before; n > 2 {
		t.Errorf("%v batches were written", n)
	}
	// Used every ten minutes: at most one renewal in half of an eighth of the TTL, and
	// none is lost.
	before = s.metric("firn_hot_batch_commands")
	for range 12 {
		s.clock.add(10 * time.Minute)
		s.want(200, "GET", path, "")
	}
	if n := s.metric("firn_hot_batch_commands") - before; n == 0 || n > 12 {
		t.Errorf("%v renewals in two hours", n)
	}
	s.restart()
	s.clock.add(59 * time.Minute)
	s.want(200, "GET", path, "")
	s.restart()
	s.clock.add(70 * time.Minute)
	s.want(404, "GET", path, "")
}
