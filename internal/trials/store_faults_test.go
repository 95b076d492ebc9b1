//go:build integration

package trials_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

// TestObjectStoreFaults is about an object store that is slow, sick or lying.
func TestObjectStoreFaults(t *testing.T) {
	t.Run("CS-aa7", storeSaysSlowDown)
	t.Run("CS-184", storeThatHangs)
	t.Run("CS-8f5", bodiesThatEndEarly)
	t.Run("CS-b4b", wrongBytes)
	t.Run("CS-da2", lostObject)
	t.Run("CS-472", storeRefuses)
	t.Run("CS-41d", slowStoreAndManyReaders)
}

// short are settings with which faults of the store show soon.
var short = []string{"--cold.request-timeout", "2s", "--seal.max-age", "1s", "--hot.max-bytes", "64KiB", "--hot.hard-bytes", "1GiB"}

// storeSaysSlowDown answers 503 to half of the requests. It is asked less then, and the
// backlog goes when it is well again.
func storeSaysSlowDown(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--read.max-bytes", "64KiB")...)
	l := open(m, 8)
	l.append(5, 10_000)
	m.cool(l.paths()...)
	a.Rule(faultproxy.Rule{Times: faultproxy.Always, Every: 2, Do: faultproxy.Fail(503, "SlowDown")})
	a.Forget()
	start := time.Now()
	lasts := time.Duration(scaled(5, 600)) * time.Second
	l.during(10_000, func() {
		var readers sync.WaitGroup
		for _, e := range l.entries {
			readers.Go(func() {
				for time.Since(start) < lasts {
					if a := m.do("GET", e.path, ""); a.status != 200 && (a.status != 503 || a.header.Get("Retry-After") == "") {
						t.Errorf("read %s: %d %v", e.path, a.status, a.header)
						return
					}
				}
			})
		}
		readers.Wait()
	})
	rate := float64(len(a.Calls("", ""))) / time.Since(start).Seconds()
	t.Logf("%.1f requests a second while half of them are refused", rate)
	if rate > 60 {
		t.Errorf("%.1f requests a second to a store that says SlowDown", rate)
	}
	a.Clear()
	m.until("the backlog drains", func() bool { return m.metric("firn_hot_bytes") < 256<<10 })
	l.settle()
}

// storeThatHangs takes requests and does not answer them, or not to the end. Readers are
// told in time, appends do not notice, and nothing is left waiting.
func storeThatHangs(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--read.max-bytes", "64KiB")...)
	l := open(m, 4)
	l.append(20, 10_000)
	m.cool(l.paths()...)
	for what, rule := range map[string]faultproxy.Rule{
		"answers stop after 1 KiB": {Method: "GET", Path: ".zst", Do: faultproxy.HangBody(1 << 10)},
		"a byte a second":          {Method: "GET", Path: ".zst", Do: faultproxy.Drip(time.Second)},
		"a byte in ten seconds":    {Method: "GET", Path: ".zst", Do: faultproxy.Drip(10 * time.Second)},
		"writes are not answered":  {Method: "PUT", Do: faultproxy.Hang()},
		"nothing is answered":      {Do: faultproxy.Hang()},
	} {
		m.kill()
		m.start() // with an empty cache
		before := m.metric("go_goroutines")
		rule.Times = faultproxy.Always
		a.Rule(rule)
		m.step(l.entries[0].path, "seal")
		var readers sync.WaitGroup
		for i := range 50 {
			e := l.entries[i%4]
			readers.Go(func() {
				at := time.Now()
				got, err := m.try("GET", e.path, "")
				if err == nil && got.status != 200 && (got.status != 503 || got.header.Get("Retry-After") == "") {
					t.Errorf("%s: read: %d %s", what, got.status, got.body)
				}
				if took := time.Since(at); err != nil || took > 30*time.Second {
					t.Errorf("%s: a reader was told after %v, %v", what, took, err)
				}
			})
		}
		l.append(3, 10_000)
		readers.Wait()
		a.Clear()
		l.holds("after " + what)
		m.until("nothing waits after "+what, func() bool {
			m.sender.CloseIdleConnections()
			return m.metric("go_goroutines") < before+30
		})
	}
	l.settle()
}

// bodiesThatEndEarly: none of them is a shorter answer, and none is kept.
func bodiesThatEndEarly(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--read.max-bytes", "64KiB")...)
	l := open(m, 2)
	l.append(20, 10_000)
	m.cool(l.paths()...)
	for what, do := range map[string]faultproxy.Action{
		"cut at once":          faultproxy.Cut(0),
		"cut":                  faultproxy.Cut(5000),
		"short and empty":      faultproxy.Short(0),
		"short":                faultproxy.Short(5000),
		"short by one":         faultproxy.Short(20_000),
		"200 instead of 206":   faultproxy.Answer(200),
		"all of it":            faultproxy.Ignore("Range"),
		"another range":        faultproxy.Answer(0, "Content-Range", "bytes 7-99/1000"),
		"no range":             faultproxy.Answer(0, "Content-Range", ""),
		"an answer of no size": faultproxy.Answer(0, "Content-Range", "bytes 0-0/*"),
	} {
		m.kill()
		m.start()
		a.Rule(faultproxy.Rule{Method: "GET", Path: ".zst", Times: faultproxy.Always, Do: do})
		for _, e := range l.entries {
			got, status := e.prefix()
			if !strings.HasPrefix(e.record(), got) || status == 200 && got != e.record() || status != 200 && status != 503 {
				t.Errorf("%s: %s gives %d with %d bytes", what, e.path, status, len(got))
			}
		}
		a.Clear()
		l.holds("after " + what)
	}
	l.settle()
}

// wrongBytes flips bits on the way and in the bucket, and swaps two objects.
func wrongBytes(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--read.max-bytes", "64KiB")...)
	l := open(m, 4)
	l.append(20, 10_000)
	m.cool(l.paths()...)
	m.kill()
	m.start()
	a.Rule(faultproxy.Rule{Method: "GET", Path: ".zst", Do: faultproxy.Flip()})
	l.holds("a bit flipped once")
	if a.Fired() != 1 || m.metric("firn_cold_corrupt_total") == 0 {
		t.Errorf("%d bits were flipped, %v counted", a.Fired(), m.metric("firn_cold_corrupt_total"))
	}
	a.Clear()

	objects := a.objects(".zst")
	flipAll := func() {
		for _, o := range objects {
			b := readFile(t, a.file(o))
			b[len(b)/3] ^= 1
			writeFile(t, a.file(o), b)
		}
	}
	swapAll := func() {
		for i := 0; i+1 < len(objects); i += 2 {
			x, y := readFile(t, a.file(objects[i])), readFile(t, a.file(objects[i+1]))
			writeFile(t, a.file(objects[i]), y)
			writeFile(t, a.file(objects[i+1]), x)
		}
	}
	for what, harm := range map[string]func(){"flipped": flipAll, "swapped": swapAll} {
		m.kill()
		m.start()
		harm()
		broken := 0
		for _, e := range l.entries {
			got, status := e.prefix()
			if !strings.HasPrefix(e.record(), got) || status == 200 && got != e.record() || status != 200 && status != 503 {
				t.Errorf("%s: %s gives %d with %d bytes", what, e.path, status, len(got))
			}
			if status == 503 {
				broken++
			}
		}
		if broken == 0 || !strings.Contains(m.log.String(), "cold data is damaged") {
			t.Errorf("%s: %d streams fail, and the log names no key", what, broken)
		}
		m.end()
		m.verify(6)
		harm() // twice is back
		m.start()
		l.holds(what + " and put back")
	}
	l.settle()
}

// lostObject takes one object out of the middle, and later puts it back.
func lostObject(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--read.max-bytes", "16KiB", "--sweep.interval", "200ms", "--sweep.grace", "1s")...)
	l := open(m, 1)
	e := l.entries[0]
	for range 5 {
		l.append(6, 10_000)
		m.cool(e.path)
	}
	objects := a.objects("stream=s0")
	if len(objects) < 3 {
		t.Fatalf("objects: %v", objects)
	}
	middle := a.file(objects[len(objects)/2])
	kept := middle + "-away"
	if err := os.Rename(middle, kept); err != nil {
		t.Fatal(err)
	}
	m.kill()
	m.start()
	got, status := e.prefix()
	if status != 503 || len(got) == 0 || !strings.HasPrefix(e.record(), got) {
		t.Errorf("the hole gives %d after %d bytes", status, len(got))
	}
	// Behind the hole all is as it was.
	tail := m.append("/ds/trial/s0", "application/json", `"x"`)
	e.stored.WriteString("\"x\"\n")
	if a := m.want(200, "GET", e.path+"?offset="+tail, ""); !a.upToDate() {
		t.Errorf("at the tail: %v", a.header)
	}
	m.want(200, "HEAD", e.path, "")
	m.want(200, "GET", e.path+"/bootstrap", "")
	if m.metric("firn_cold_missing_total") == 0 {
		t.Error("the loss is not counted")
	}
	for range 100 {
		m.want(503, "GET", e.path+"?offset="+offsetAfter(t, m, e), "")
	}
	if n := strings.Count(m.log.String(), "missing from cold storage"); n == 0 {
		t.Errorf("100 reads of a lost object have %d lines in the log", n)
	}
	m.end()
	m.verify(6)
	if err := os.Rename(kept, middle); err != nil {
		t.Fatal(err)
	}
	m.start()
	l.settle()
}

// offsetAfter follows a stream up to what cannot be read.
func offsetAfter(t *testing.T, m *machine, e *entry) string {
	t.Helper()
	for offset := "-1"; ; {
		a := m.do("GET", e.path+"?offset="+offset, "")
		if a.status != 200 {
			return offset
		}
		if a.upToDate() {
			t.Fatal("all can be read")
		}
		offset = a.next()
	}
}

// storeRefuses: none of these means that an object is not there. Nothing is deleted,
// and all goes on when it is over.
func storeRefuses(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--sweep.interval", "100ms", "--sweep.grace", "1s", "--snapshot.keep-history", "0s")...)
	l := open(m, 3)
	l.append(10, 10_000)
	m.cool(l.paths()...)
	for _, c := range []struct {
		status int
		code   string
		advice string // a part of it
		pairs  []string
	}{
		{403, "AccessDenied", "allow", nil}, {400, "ExpiredToken", "credentials", nil}, {401, "Unauthorized", "credentials", nil},
		{403, "RequestTimeTooSkewed", "clock", nil}, {404, "NoSuchBucket", "make the bucket", nil},
		{301, "PermanentRedirect", "region eu-west-1", []string{"X-Amz-Bucket-Region", "eu-west-1"}},
		{400, "AuthorizationHeaderMalformed", "region", nil}, {403, "InvalidAccessKeyId", "credentials", nil},
	} {
		m.kill()
		m.start()
		objects := len(a.objects(".zst"))
		a.Rule(faultproxy.Rule{Times: faultproxy.Always, Do: faultproxy.Fail(c.status, c.code, c.pairs...)})
		for _, e := range l.entries {
			if got := m.do("GET", e.path, ""); got.status != 503 {
				t.Errorf("%s: read: %d %s", c.code, got.status, got.body)
			}
		}
		m.step(l.entries[0].path, "seal")
		l.append(2, 10_000)
		m.until(c.code+" is told", func() bool { return strings.Contains(m.readiness(), "since") })
		m.kill()
		if code, out := m.attempt(); code == 0 {
			t.Errorf("%s: the server starts", c.code)
		} else if !strings.Contains(out, "cold storage") || !strings.Contains(out, c.advice) {
			t.Errorf("%s: refused with %d: %s", c.code, code, out)
		} else {
			t.Logf("%s: exit code %d, %s", c.code, code, lastLine(out))
		}
		m.kill()
		if now := len(a.objects(".zst")); now < objects {
			t.Errorf("%s: %d objects of %d are left", c.code, now, objects)
		}
		a.Clear()
		m.start()
	}
	l.holds("after all refusals")
	l.settle()
}

// slowStoreAndManyReaders: one GET serves all, goes on when they leave, and retries
// meet the cache.
func slowStoreAndManyReaders(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--cold.request-timeout", "30s", "--hot.max-bytes", "1MiB", "--seal.target-bytes", "1MiB", "--cache.max-bytes", "16MiB")...)
	l := open(m, 1)
	l.append(50, 10_000)
	e := l.entries[0]
	m.cool(e.path)
	m.kill()
	m.start()
	a.Rule(faultproxy.Rule{Method: "GET", Path: ".zst", Times: faultproxy.Always, Do: faultproxy.Slow(3 * time.Second)})
	a.Forget()
	var tries, done atomic.Int64
	var readers sync.WaitGroup
	for range 200 {
		readers.Go(func() {
			for range 10 {
				tries.Add(1)
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				res, err := m.begin(ctx, http.MethodGet, e.path, "")
				if err == nil {
					res.Body.Close()
					if res.StatusCode == 200 {
						done.Add(1)
						cancel()
						return
					}
				}
				cancel()
			}
		})
	}
	readers.Wait()
	gets := a.Calls("GET", ".zst")
	t.Logf("200 readers, %d tries, %d done, %d GETs", tries.Load(), done.Load(), len(gets))
	seen := map[string]int{}
	for _, g := range gets {
		if seen[g.Path+g.Range]++; seen[g.Path+g.Range] > 1 {
			t.Errorf("%s %s was fetched %d times", g.Path, g.Range, seen[g.Path+g.Range])
		}
	}
	if done.Load() != 200 || len(gets) > 4 {
		t.Errorf("%d of 200 readers came through, by %d GETs", done.Load(), len(gets))
	}
	a.Clear()
	l.settle()
}
