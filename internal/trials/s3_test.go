//go:build integration

package trials_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"firn/internal/faultproxy"
)

// TestS3 is about what stores that speak S3 do differently.
func TestS3(t *testing.T) {
	t.Run("S3-8ef", partsOfOneSize)
	t.Run("S3-dab", conditionsThatAreNot)
	t.Run("S3-fe5", deletesThatFail)
	t.Run("S3-3db", spellingsOfOnePlace)
	t.Run("S3-9ed", versionedBucket)
}

// partsOfOneSize has a store that refuses uploads whose parts differ in size, but for
// the last.
func partsOfOneSize(t *testing.T) {
	a := newArchive(t)
	var mu sync.Mutex
	parts := map[string][]int64{} // by upload
	refused := 0
	upload := func(x *faultproxy.Exchange) string { return x.Request.URL.Query().Get("uploadId") }
	a.Rule(
		faultproxy.Rule{Method: "PUT", Path: "uploadId=", Times: faultproxy.Always, Do: func(x *faultproxy.Exchange) {
			mu.Lock()
			parts[upload(x)] = append(parts[upload(x)], x.Request.ContentLength)
			mu.Unlock()
			x.Pass()
		}},
		faultproxy.Rule{Method: "POST", Path: "uploadId=", Times: faultproxy.Always, Do: func(x *faultproxy.Exchange) {
			mu.Lock()
			sizes := slices.Clone(parts[upload(x)])
			mu.Unlock()
			slices.Sort(sizes)
			largest := sizes[len(sizes)-1]
			for _, n := range sizes[1:] {
				if n != largest || n < 5<<20 {
					mu.Lock()
					refused++
					mu.Unlock()
					faultproxy.Fail(400, "InvalidPart")(x)
					return
				}
			}
			x.Pass()
		}},
	)
	m := install(t, a, "--seal.max-age", "1h")
	const path = "/ds/trial/s0"
	random := rand.New(rand.NewPCG(1, 1))
	m.create(path, "text/plain", "x")
	for _, tenths := range []int{49, 50, 51, 640, 650} {
		blob := noise(random, tenths<<20/10)
		at := m.append(path, "text/plain", "x")
		// The source is uneven: it gives what it likes.
		r, err := http.NewRequest("PUT", m.url+path+"/snapshot/"+at, uneven(blob))
		if err != nil {
			t.Fatal(err)
		}
		res, err := m.sender.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 204 {
			t.Fatalf("publish %d.%d MiB: %s", tenths/10, tenths%10, res.Status)
		}
		if got := m.want(200, "GET", path+"/snapshot/"+at, ""); got.body != blob {
			t.Errorf("%d.%d MiB come back as %d bytes", tenths/10, tenths%10, len(got.body))
		}
	}
	if refused > 0 || len(parts) == 0 {
		t.Errorf("%d of %d uploads in parts were refused", refused, len(parts))
	}
	m.end()
	m.verify(0)
}

// uneven gives a text in pieces of all sizes.
func uneven(text string) io.Reader {
	r, w := io.Pipe()
	go func() {
		for n := 1; len(text) > 0; n = n*3%100_003 + 1 {
			k := min(n, len(text))
			if _, err := io.WriteString(w, text[:k]); err != nil {
				return
			}
			text = text[k:]
		}
		w.Close()
	}()
	return r
}

// conditionsThatAreNot are answers to conditional puts: ignored, refused, in conflict,
// and lost after they were done.
func conditionsThatAreNot(t *testing.T) {
	conditional := func(do faultproxy.Action) faultproxy.Action {
		return func(x *faultproxy.Exchange) {
			if x.Request.Header.Get("If-None-Match")+x.Request.Header.Get("If-Match") == "" {
				x.Pass()
				return
			}
			do(x)
		}
	}
	for what, rule := range map[string]faultproxy.Rule{
		"ignored":              {Times: faultproxy.Always, Do: conditional(faultproxy.Ignore("If-None-Match", "If-Match"))},
		"501":                  {Times: faultproxy.Always, Do: conditional(faultproxy.Fail(501, "NotImplemented"))},
		"409 now and then":     {Times: faultproxy.Always, Every: 3, Do: conditional(faultproxy.Fail(409, "ConditionalRequestConflict"))},
		"lost now and then":    {Times: faultproxy.Always, Every: 3, Do: conditional(faultproxy.LoseReply())},
		"every second is lost": {Times: faultproxy.Always, Every: 2, Do: conditional(faultproxy.LoseReply())},
	} {
		t.Run(what, func(t *testing.T) {
			a := newArchive(t)
			rule.Method = "PUT"
			a.Rule(rule)
			m := install(t, a, short...)
			l := open(m, 2)
			l.append(5, 10_000)
			equip(t, a, filepath.Join(t.TempDir(), "other")).refused(5, "another store")
			m.cool(l.paths()...)
			m.kill()
			m.start()
			l.append(5, 10_000)
			if a.Fired() == 0 {
				t.Error("no answer was changed")
			}
			l.settle()
		})
	}
}

// deletesThatFail: an object leaves the catalog when the store has confirmed its end,
// and until then nothing is forgotten, over restarts too.
func deletesThatFail(t *testing.T) {
	const half = `<?xml version="1.0" encoding="UTF-8"?><DeleteResult><Error><Key>%s</Key><Code>InternalError</Code></Error></DeleteResult>`
	for what, rules := range map[string][]faultproxy.Rule{
		"200 with errors inside": {{Method: "POST", Path: "?delete", Times: 3, Do: func(x *faultproxy.Exchange) {
			b, _ := io.ReadAll(x.Request.Body)
			_, rest, _ := strings.Cut(string(b), "<Key>")
			key, _, _ := strings.Cut(rest, "</Key>")
			fmt.Fprintf(x.Writer, half, key)
		}}},
		"no batches":        {{Method: "POST", Path: "?delete", Times: faultproxy.Always, Do: faultproxy.Fail(501, "NotImplemented")}},
		"MD5 is demanded":   {{Method: "POST", Path: "?delete", Times: faultproxy.Always, Do: faultproxy.Fail(400, "MissingContentMD5")}},
		"no right, a while": {{Method: "POST", Path: "?delete", Times: 8, Do: faultproxy.Fail(403, "AccessDenied")}, {Method: "DELETE", Times: 8, Do: faultproxy.Fail(403, "AccessDenied")}},
		"the reply is lost": {{Method: "POST", Path: "?delete", Times: 2, Do: faultproxy.LoseReply()}},
	} {
		t.Run(what, func(t *testing.T) {
			a := newArchive(t)
			m := install(t, a, append(short, "--sweep.interval", "100ms", "--sweep.grace", "1s")...)
			l := open(m, 6)
			l.append(3, 30_000)
			m.cool(l.paths()...)
			gone := l.entries[:4]
			l.entries = l.entries[4:]
			a.Rule(rules...)
			for _, e := range gone {
				m.want(204, "DELETE", e.path, "")
			}
			m.until("a delete was tried", func() bool { return a.Fired() > 0 })
			m.kill()
			m.start()
			left := func() (n int) {
				for _, e := range gone {
					n += len(a.objects("stream=" + strings.TrimPrefix(e.path, "/ds/trial/")))
				}
				return n
			}
			if strings.HasPrefix(what, "no right") {
				a.Clear() // the right comes back; what was put off comes again in time
			}
			m.until("all objects are gone", func() bool { return left() == 0 })
			l.settle()
		})
	}
}

// spellingsOfOnePlace starts one server by several spellings of its bucket.
func spellingsOfOnePlace(t *testing.T) {
	a := newArchive(t)
	m := install(t, a, short...)
	l := open(m, 2)
	host := strings.TrimPrefix(a.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, cold := range []string{
		"s3://archive/firn/?region=us-east-1&path_style=true&endpoint=" + a.URL,
		"s3://archive//firn?region=us-east-1&path_style=true&endpoint=" + a.URL + "/",
		"s3://archive/firn?region=us-east-1&path_style=true&endpoint=http://localhost:" + port,
		a.at("firn"),
	} {
		l.append(3, 30_000)
		m.cool(l.paths()...)
		m.end()
		m.args = append(m.args, "--cold", cold)
		m.start()
		l.holds(cold)
	}
	for _, o := range a.objects("") {
		if !strings.HasPrefix(o, "firn/") {
			t.Errorf("an object lies at %s", o)
		}
	}
	m.end()
	for _, prefix := range []string{"other", "", "firn/x", "Firn"} {
		equip(t, a, m.dir, "--cold", a.at(prefix)).refused(5, "cold storage")
	}
	m.start()
	l.settle()
}

// versionedBucket has a bucket that keeps every version, and one that is locked.
func versionedBucket(t *testing.T) {
	t.Run("versions", everyVersionIsKept)
	t.Run("locked", nothingMayBeRemoved)
}

// everyVersionIsKept: what is removed is hidden by a marker, which is the store's
// business.
func everyVersionIsKept(t *testing.T) {
	a := newVersionedArchive(t)
	m := install(t, a, append(short, "--sweep.interval", "100ms", "--sweep.grace", "1s")...)
	l := open(m, 4)
	l.append(5, 30_000)
	m.cool(l.paths()...)
	gone := l.entries[:2]
	l.entries = l.entries[2:]
	for _, e := range gone {
		m.want(204, "DELETE", e.path, "")
	}
	m.until("objects are removed", func() bool { return m.metric("firn_compactor_swept_objects_total") >= 2 })
	m.kill()
	m.start()
	l.append(2, 30_000)
	l.settle()
}

// nothingMayBeRemoved has a bucket with a lock: puts must carry a checksum, and objects
// may not be removed for a while. What is refused is asked for again after the grace, a
// few lines in the log tell of it, and nothing else waits.
func nothingMayBeRemoved(t *testing.T) {
	a := newArchive(t)
	locked := func(keys int) faultproxy.Action {
		return func(x *faultproxy.Exchange) {
			if keys == 1 {
				faultproxy.Fail(403, "AccessDenied")(x)
				return
			}
			b, _ := io.ReadAll(x.Request.Body)
			fmt.Fprint(x.Writer, `<?xml version="1.0" encoding="UTF-8"?><DeleteResult>`)
			for i, part := range strings.Split(string(b), "<Key>") {
				if key, _, ok := strings.Cut(part, "</Key>"); i > 0 && ok {
					fmt.Fprintf(x.Writer, "<Error><Key>%s</Key><Code>AccessDenied</Code><Message>object is locked</Message></Error>", key)
				}
			}
			fmt.Fprint(x.Writer, "</DeleteResult>")
		}
	}
	var puts, bare atomic.Int64
	checksum := faultproxy.Rule{Method: "PUT", Times: faultproxy.Always, Do: func(x *faultproxy.Exchange) {
		puts.Add(1)
		if !carriesChecksum(x.Request.Header) {
			bare.Add(1)
			faultproxy.Fail(400, "InvalidRequest")(x)
			return
		}
		x.Pass()
	}}
	a.Rule(checksum,
		faultproxy.Rule{Method: "POST", Path: "?delete", Times: faultproxy.Always, Do: locked(2)},
		faultproxy.Rule{Method: "DELETE", Times: faultproxy.Always, Do: locked(1)},
	)
	m := install(t, a, append(short, "--sweep.interval", "100ms", "--sweep.grace", "1s", "--snapshot.keep-history", "0s")...)
	l := open(m, 6)
	l.append(3, 30_000)
	m.cool(l.paths()...)
	gone := l.entries[:4]
	l.entries = l.entries[4:]
	for _, e := range gone {
		m.want(204, "DELETE", e.path, "")
	}
	removals := func() int { return len(a.Calls("POST", "?delete")) + len(a.Calls("DELETE", "")) }
	m.until("a removal was refused", func() bool { return removals() > 0 })
	a.Forget()
	logged, start := m.log.String(), time.Now()
	<-time.After(time.Duration(scaled(6, 600)) * time.Second)
	asked, lasted := removals(), time.Since(start)
	// Postponed by the grace of 1 s: each object twice at most (in a batch and by
	// itself) in that time, and not with each of the ten sweeps.
	if most := int(lasted.Seconds()+1) * 2 * len(a.objects(".zst")); asked == 0 || asked > most {
		t.Errorf("%d removals were asked for in %v, want some and %d at most", asked, lasted, most)
	}
	if lines := strings.Count(m.log.String()[len(logged):], "\n"); lines > 3 {
		t.Errorf("%d lines in the log while nothing may be removed:\n%s", lines, m.log.String()[len(logged):])
	}
	// All else goes on, over a kill too.
	l.append(3, 30_000)
	m.cool(l.paths()...)
	m.kill()
	m.start()
	l.holds("while nothing may be removed")
	a.Clear()
	a.Rule(checksum)
	m.until("what was locked is removed", func() bool {
		n := 0
		for _, e := range gone {
			n += len(a.objects("stream=" + strings.TrimPrefix(e.path, "/ds/trial/")))
		}
		return n == 0
	})
	l.settle()
	if puts.Load() == 0 || bare.Load() > 0 {
		t.Errorf("%d of %d puts carry no checksum", bare.Load(), puts.Load())
	}
}

// carriesChecksum reports whether a put has one of the checksums that a locked bucket
// asks for.
func carriesChecksum(h http.Header) bool {
	if h.Get("Content-Md5") != "" || strings.Contains(strings.ToLower(h.Get("X-Amz-Trailer")), "x-amz-checksum-") {
		return true
	}
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), "x-amz-checksum-") {
			return true
		}
	}
	return false
}
