//go:build integration

package trials_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

// TestSealing is about the way of bytes into the cold tier.
func TestSealing(t *testing.T) {
	t.Run("CM-4a4", lostRepliesOfSegments)
	t.Run("CM-e8e", slowStoreUnderPressure)
	t.Run("CM-3a0", oneStreamIsRefusedForLong)
	t.Run("CM-29b", oneStreamIsDamaged)
	t.Run("CM-59f", impossibleSizes)
	t.Run("CM-ea7", silentStreamsAreSealed)
}

// lostRepliesOfSegments loses the answers of PUTs, lets the streams grow before the
// next try, and starts the server again in between.
func lostRepliesOfSegments(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, sweeps...)
	l := open(m, 3)
	for range 4 {
		a.Rule(faultproxy.Rule{Method: "PUT", Path: ".zst", Times: 3, Do: faultproxy.LoseReply()})
		l.append(3, 30_000)
		m.until("a reply is lost", func() bool { return a.Fired() > 0 })
		l.append(2, 30_000)
		m.kill()
		a.Clear()
		m.start()
		l.holds("after a lost reply")
	}
	puts := map[string]int{}
	for _, c := range a.Calls("PUT", ".zst") {
		key, _, _ := strings.Cut(c.Path, "?")
		if puts[key]++; puts[key] > 5 { // five attempts of one call
			t.Errorf("%s was written %d times", key, puts[key])
		}
	}
	m.cool(l.paths()...)
	m.until("what was not committed is not there any more, or unnamed", func() bool { return m.metric("firn_hot_bytes") == 0 })
	l.settle()
}

// slowStoreUnderPressure has PUTs that take seconds, a tiny hot tier, snapshots and
// lifetimes. Appends wait then; nothing is dropped.
func slowStoreUnderPressure(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(sweeps, "--hot.max-bytes", "256KiB", "--hot.hard-bytes", "512KiB", "--cold.request-timeout", "30s", "--seal.concurrency", "4")...)
	l := open(m, 4)
	m.create("/ds/trial/ttl", "text/plain", strings.Repeat("t", 50_000), "Stream-TTL: 1")
	snap := m.create("/ds/trial/snap", "text/plain", strings.Repeat("s", 50_000))
	a.Rule(faultproxy.Rule{Method: "PUT", Path: ".zst", Times: faultproxy.Always, Do: faultproxy.Slow(time.Duration(scaled(400, 5000)) * time.Millisecond)})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for _, e := range l.entries {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				had := e.record()
				got, err := e.read("-1")
				if err != nil || !strings.HasPrefix(got, had) {
					t.Errorf("%s: %d bytes of %d, %v", e.path, len(got), len(had), err)
					return
				}
			}
		})
	}
	m.want(204, "PUT", "/ds/trial/snap/snapshot/"+snap, "state")
	l.append(scaled(20, 100), 30_000)
	close(stop)
	readers.Wait()
	if m.metric("firn_hot_refused_appends_total") == 0 {
		t.Error("nobody had to wait: there was no pressure")
	}
	m.want(404, "GET", "/ds/trial/ttl", "")
	if got := m.want(200, "GET", "/ds/trial/snap/snapshot/"+snap, ""); got.body != "state" {
		t.Errorf("the snapshot is %q", got.body)
	}
	a.Clear()
	l.settle()
}

// oneStreamIsRefusedForLong fails the segments of one stream, over a start, and then
// lets them pass. The others go on meanwhile, and its segments leave no gap.
func oneStreamIsRefusedForLong(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, sweeps...)
	l := open(m, 4)
	for round, do := range []faultproxy.Action{faultproxy.Fail(500, "InternalError"), faultproxy.Fail(403, "AccessDenied")} {
		a.Rule(faultproxy.Rule{Method: "PUT", Path: "stream=s0", Times: 50, Do: do})
		for n := range 4 {
			l.append(3, 30_000)
			if n == 1 {
				m.kill()
				m.start()
			}
		}
		for _, e := range l.entries[1:] {
			name := "stream=" + strings.TrimPrefix(e.path, "/ds/trial/")
			m.until("others are sealed: "+name, func() bool { return len(a.objects(name)) > round })
		}
		a.Clear()
		m.until("it catches up", func() bool { return m.step(l.entries[0].path, "seal") == 200 })
	}
	l.settle()
}

// oneStreamIsDamaged damages the hot bytes of one of many streams: the others are
// sealed, and it is named once.
func oneStreamIsDamaged(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--hot.max-bytes", "16MiB", "--seal.max-age", "1h", "--seal.target-bytes", "16MiB")...)
	m.create("/ds/trial/bad", "text/plain", "")
	bad := &entry{m: m, path: "/ds/trial/bad", random: openRandom()}
	for range 40 {
		if err := bad.append(100_000); err != nil {
			t.Fatal(err)
		}
	}
	l := open(m, 20)
	l.append(2, 30_000)
	m.until("its bytes are in a table", func() bool { return len(m.hotFiles(".sst")) > 0 })
	m.end()
	restore := m.checkpoint()
	hurt := 0
	for _, name := range m.hotFiles(".sst") {
		b := readFile(t, name)
		// Text that does not compress is there as it was sent, or nearly.
		b[len(b)/2] ^= 0xff
		hurt++
		writeFile(t, name, b)
	}
	m.args = append(m.args, "--hot.max-bytes", "64KiB", "--seal.max-age", "1s", "--seal.target-bytes", "64KiB")
	m.start()
	m.until("the damage is told", func() bool { return strings.Contains(m.readiness(), "cannot be sealed") })
	sealed := func() (n int) {
		for _, e := range l.entries {
			if got, status := e.prefix(); status == 200 && got == e.record() {
				n++
			}
		}
		return n
	}
	// A table holds more than the damaged block: all whose bytes can be read are served.
	if n := sealed(); n < len(l.entries)/2 {
		t.Errorf("%d of %d other streams can be read", n, len(l.entries))
	}
	m.until("others are sealed", func() bool { return m.metric("firn_compactor_sealed_bytes_total") > 300_000 })
	if n := strings.Count(m.log.String(), "cannot seal stream"); n == 0 || n > 5 {
		t.Errorf("the log names stuck streams %d times, of %d tables hurt", n, hurt)
	}
	m.kill()
	restore()
	for _, o := range a.objects(".zst") { // what was sealed since is not of this data directory
		os.Remove(a.file(o))
	}
	m.start()
	l.entries = append(l.entries, bad)
	l.settle()
}

// impossibleSizes are settings under which nothing would ever be sealed, or everything
// be refused. They are refused at the start; small ones that can work do.
func impossibleSizes(t *testing.T) {
	a := newArchive(t)
	for _, args := range [][]string{
		{"--hot.max-bytes", "0"}, {"--hot.max-bytes", "-1"}, {"--hot.max-bytes", "1"}, {"--hot.max-bytes", "8Mib/s"}, {"--hot.max-bytes", "lots"},
		{"--hot.max-bytes", "1MiB", "--hot.hard-bytes", "512KiB"},
		{"--seal.max-age", "0s"}, {"--seal.max-age", "-1s"}, {"--seal.max-age", "10"}, {"--seal.target-bytes", "0"},
		{"--seal.target-bytes", "2GiB"}, {"--sweep.grace", "0s"},
	} {
		equip(t, a, t.TempDir(), args...).refused(2, strings.TrimPrefix(args[0], "--")[:3])
	}
	m := install(t, a, "--hot.max-bytes", "64KiB", "--hot.hard-bytes", "0", "--seal.target-bytes", "64KiB", "--seal.max-age", "1s")
	l := open(m, 2)
	l.append(60, 5_000)
	m.until("what is over the budget is cold", func() bool { return m.metric("firn_hot_bytes") <= 64<<10 })
	l.settle()
}

// silentStreamsAreSealed: streams that end with little are sealed all the same, so that
// the loss of the disk costs nothing after seal.max_age.
func silentStreamsAreSealed(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(short, "--backup.interval", "1s", "--hot.max-bytes", "1GiB", "--hot.hard-bytes", "2GiB", "--seal.target-bytes", "1MiB")...)
	l := open(m, scaled(40, 1000))
	l.append(1, scaled(5_000, 100_000))
	for range 3 {
		m.until("all is sealed", func() bool { return unsealed(m) == 0 })
	}
	m.until("the catalog is copied", func() bool { code, _ := m.run("backup", "--admin-url", m.admin); return code == 0 })
	m.kill()
	if err := os.RemoveAll(m.dir); err != nil {
		t.Fatal(err)
	}
	if code, out := m.run(append([]string{"rebuild", "--take-over"}, m.args[1:]...)...); code != 0 && code != 7 {
		t.Fatalf("rebuild: exit code %d\n%s", code, out)
	}
	m.start()
	l.holds("rebuilt from the bucket")
	l.settle()
}

// unsealed is how many bytes are in the hot tier alone.
func unsealed(m *machine) (n int) {
	for _, s := range strings.Split(m.scrape(), "\n") {
		if rest, ok := strings.CutPrefix(s, `firn_hot_bytes{state="unsealed"} `); ok {
			fmt.Sscan(rest, &n)
		}
	}
	return n
}
