//go:build integration

package trials_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

// TestCollection is about the removal of objects: never one that is needed.
func TestCollection(t *testing.T) {
	t.Run("GC-e61", sweepsBetweenPutAndCommit)
	t.Run("GC-1af", killsWhileObjectsAreRemoved)
	t.Run("GC-221", sweepsOfAStoreThatLies)
	t.Run("GC-65b", oldCopyOfTheDataDirectory)
}

// sweeps are settings with which garbage goes soon.
var sweeps = append([]string{"--sweep.interval", "100ms", "--sweep.grace", "1s", "--snapshot.keep-history", "0s"}, short...)

// named fails unless all objects of segments that the catalog names are there.
func (m *machine) named() {
	m.t.Helper()
	m.verifyOnline()
}

// sweepsBetweenPutAndCommit holds the answers of PUTs back for longer than the grace,
// and has a store whose objects are an hour younger or older than they are.
func sweepsBetweenPutAndCommit(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, append(sweeps, "--cold.request-timeout", "30s")...)
	l := open(m, 3)
	for _, skew := range []time.Duration{0, time.Hour, -time.Hour} {
		at := time.Now().Add(skew).UTC().Format(http.TimeFormat)
		a.Rule(
			faultproxy.Rule{Method: "PUT", Path: ".zst", Times: 4, Do: faultproxy.SlowAnswer(3 * time.Second)},
			faultproxy.Rule{Method: "GET", Times: faultproxy.Always, Do: faultproxy.Answer(0, "Last-Modified", at)},
		)
		l.append(8, 30_000)
		m.until("the held PUTs are over", func() bool { return a.Fired() >= 4 && m.metric("firn_hot_bytes") < 400<<10 })
		l.holds(fmt.Sprintf("with a clock of %v", skew))
		m.named()
		a.Clear()
	}
	l.settle()
}

// killsWhileObjectsAreRemoved kills the server at removals of objects and at puts of
// merged ones, before they are done and after, while streams are deleted, trimmed and
// merged, and a bucket goes with all that it has.
func killsWhileObjectsAreRemoved(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, sweeps...)
	l := open(m, 2)
	kills := map[string]int{}
	for round := range scaled(12, 120) {
		trim, gone := fmt.Sprintf("/ds/trial/trim%d", round), fmt.Sprintf("/ds/trial/gone%d", round)
		purged := fmt.Sprintf("/ds/purged%d", round)
		m.create(trim, "text/plain", strings.Repeat("a", 5000))
		m.create(gone, "text/plain", strings.Repeat("b", 5000))
		m.want(201, "PUT", purged, "")
		m.create(purged+"/x", "text/plain", strings.Repeat("c", 5000))
		m.cool(trim, gone, purged+"/x")
		for range 9 { // small segments in a row, to be merged
			l.append(1, 500)
			m.cool(l.paths()...)
		}
		middle := m.tail(trim)
		m.append(trim, "text/plain", "the rest")
		m.cool(trim)
		m.want(204, "PUT", trim+"/snapshot/"+middle, "state", "Content-Type: text/plain")
		m.want(204, "DELETE", gone, "")
		m.want(204, "DELETE", purged+"/x", "")
		m.want(204, "DELETE", purged, "")
		var died atomic.Bool
		what := "removal"
		if round%3 == 2 {
			what = "put" // all is sealed: it is of a merge
		}
		die := func(x *faultproxy.Exchange) {
			if round%2 == 0 { // the store does it, and nobody learns of that
				res := x.Forward(context.Background())
				res.Body.Close()
			}
			m.kill()
			died.Store(true)
			x.Abort()
		}
		if what == "put" {
			a.Rule(faultproxy.Rule{Method: "PUT", Path: ".zst", Do: die})
		} else {
			a.Rule(
				faultproxy.Rule{Method: "POST", Path: "delete", Skip: round / 2 % 2, Do: die},
				faultproxy.Rule{Method: "DELETE", Skip: round / 2 % 2, Do: die},
			)
		}
		for end := time.Now().Add(4 * time.Second); !died.Load() && time.Now().Before(end); {
			<-time.After(10 * time.Millisecond)
		}
		if died.Load() {
			kills[what]++
		}
		m.kill()
		a.Clear()
		m.start()
		l.holds("killed at a " + what)
		m.want(404, "GET", gone, "")
		m.want(404, "GET", purged+"/x", "")
		m.want(404, "GET", purged, "")
		if got := m.want(200, "GET", trim+"?offset="+middle, "").body; got != "the rest" {
			t.Errorf("%s after its snapshot: %q", trim, got)
		}
		if got := m.want(200, "GET", trim+"/snapshot/"+middle, "").body; got != "state" {
			t.Errorf("%s has the snapshot %q", trim, got)
		}
		m.named()
	}
	if kills["removal"] < 4 || kills["put"] < 2 {
		t.Errorf("it was killed at %v", kills)
	}
	l.settle()
}

// sweepsOfAStoreThatLies asks for nothing to be removed while the store answers all
// kinds of nonsense.
func sweepsOfAStoreThatLies(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, sweeps...)
	l := open(m, 3)
	l.append(8, 30_000)
	m.cool(l.paths()...)
	m.end()
	m.start()
	empty := func(x *faultproxy.Exchange) {
		fmt.Fprint(x.Writer, `<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>`)
	}
	for what, rule := range map[string]faultproxy.Rule{
		"lists of nothing":   {Method: "GET", Path: "list-type", Do: empty},
		"lists that fail":    {Method: "GET", Path: "list-type", Do: faultproxy.Fail(503, "SlowDown")},
		"owner is hidden":    {Method: "GET", Path: "/owner", Do: faultproxy.Hide()},
		"owner is empty":     {Method: "GET", Path: "/owner", Do: faultproxy.Short(0)},
		"owner is forbidden": {Method: "GET", Path: "/owner", Do: faultproxy.Fail(403, "AccessDenied")},
		"all is hidden":      {Method: "GET", Do: faultproxy.Hide()},
	} {
		rule.Times = faultproxy.Always
		a.Rule(rule)
		m.want(201, "PUT", "/ds/trial/gone", strings.Repeat("g", 1000), "Content-Type: text/plain")
		m.want(204, "DELETE", "/ds/trial/gone", "")
		<-time.After(1500 * time.Millisecond) // longer than the grace, and many sweeps
		a.Clear()
		m.until("the compactor works again after "+what, func() bool { return m.step(l.entries[0].path, "seal") == 200 })
		l.holds("after " + what)
		m.named()
	}
	// The settings name another place, or the data directory is another one.
	m.end()
	objects := a.objects("")
	equip(t, a, m.dir, append(sweeps, "--cold", a.at("other"))...).refused(5, "cold storage")
	equip(t, a, filepath.Join(t.TempDir(), "empty"), sweeps...).refused(5, "another store")
	if now := a.objects(""); !slices.Equal(now, objects) {
		t.Errorf("the bucket had %v and has %v", objects, now)
	}
	m.start()
	l.settle()
}

// oldCopyOfTheDataDirectory puts yesterday's data directory back.
func oldCopyOfTheDataDirectory(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, sweeps...)
	l := open(m, 3)
	l.append(5, 30_000)
	m.kill()
	putBack := snapshotOf(t, m.dir)
	m.start()
	l.append(5, 30_000)
	m.cool(l.paths()...)
	m.end()
	newer := snapshotOf(t, m.dir)
	objects := a.objects(".zst")
	putBack()
	m.refused(5, "older than cold storage")
	// Nor when the store was away at the start: then nothing is written or removed.
	a.Rule(faultproxy.Rule{Times: faultproxy.Always, Do: faultproxy.Drop()})
	code, out := m.attempt()
	t.Logf("an old copy, with the store away: exit code %d %s", code, lastLine(out))
	a.Clear()
	if code == 0 {
		m.until("the old copy is told", func() bool { return strings.Contains(m.readiness(), "older than cold storage") })
		m.kill()
	}
	for _, o := range objects {
		if _, err := os.Stat(a.file(o)); err != nil {
			t.Errorf("%s was removed", o)
		}
	}
	newer()
	m.start()
	l.settle()
}
