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
	"testing"

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

// versionedBucket has a bucket that keeps every version: what is removed is hidden by a
// marker, which is the store's business.
func versionedBucket(t *testing.T) {
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
