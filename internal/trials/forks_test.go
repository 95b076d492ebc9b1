package trials_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"firn/compactor"
)

func TestForks(t *testing.T) {
	t.Run("FK-33d", refusedForksHoldNothing)
	t.Run("FK-8f4", forksOutliveTheirSource)
	t.Run("FK-d99", snapshotOfAForkedSource)
	t.Run("FK-1c0", longChain)
	t.Run("FK-287", onlyTrueCloses)
}

func refusedForksHoldNothing(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	tail := s.create(path, "text/plain", "hello")
	s.create("/ds/trial/taken", "text/plain", "")
	for _, tt := range []struct {
		status int
		path   string
		header []string
	}{
		{409, "/ds/trial/f", []string{"Content-Type: application/json"}},
		{400, "/ds/trial/f", []string{"Stream-Fork-Offset: " + at(tail, 6)}},
		{400, "/ds/trial/f", []string{"Stream-Fork-Offset: " + tail, "Stream-Fork-Sub-Offset: +1"}},
		{400, "/ds/trial/f", []string{"Stream-Fork-Offset: " + tail, "Stream-Fork-Sub-Offset: 1"}},
		{400, "/ds/trial/f", []string{"Stream-TTL: 5", "Stream-Expires-At: 2090-01-02T03:04:05Z"}},
		{409, "/ds/trial/taken", nil},
		{404, "/ds/absent/f", nil},
		{400, "/ds/trial/a..b", nil},
	} {
		s.want(tt.status, "PUT", tt.path, "", append(tt.header, "Stream-Forked-From: "+path)...)
	}
	s.want(204, "DELETE", path, "")
	s.want(404, "HEAD", path, "")
	s.want(201, "PUT", path, "")
}

func forksOutliveTheirSource(t *testing.T) {
	s := serve(t, func(o *options) { o.policy = compactor.Policy{Target: 16 << 10} })
	const path = "/ds/trial/s"
	var content strings.Builder
	s.create(path, "text/plain", "")
	var tails []string
	for i := range scaled(20, 2000) {
		text := strings.Repeat(fmt.Sprintf("%d;", i), 2000)
		content.WriteString(text)
		tails = append(tails, s.append(path, "text/plain", text))
	}
	s.seal(path)
	all := content.String()
	middle := tails[len(tails)/2]
	s.want(201, "PUT", "/ds/trial/middle", "", "Stream-Forked-From: "+path, "Stream-Fork-Offset: "+middle)
	s.want(201, "PUT", "/ds/trial/tail", "", "Stream-Forked-From: "+path)
	s.append("/ds/trial/tail", "text/plain", "own")
	s.want(204, "DELETE", path, "")
	s.collect()
	s.restart()
	check := func(when string) {
		t.Helper()
		same(t, when+", tail", s.read("/ds/trial/tail", "-1"), all+"own")
	}
	check("source deleted")
	same(t, "middle", s.read("/ds/trial/middle", "-1"), all[:position(middle)])
	s.want(410, "GET", path, "")
	s.want(409, "PUT", path, "")
	s.want(204, "DELETE", "/ds/trial/middle", "")
	s.collect()
	check("one fork left")
	if len(s.segments()) == 0 {
		t.Error("the objects are gone before the last fork")
	}
	s.want(204, "DELETE", "/ds/trial/tail", "")
	s.collect()
	if left := s.segments(); len(left) != 0 {
		t.Errorf("%d objects are left after the last fork", len(left))
	}
	s.want(404, "GET", path, "")
}

func snapshotOfAForkedSource(t *testing.T) {
	for _, cold := range []bool{false, true} {
		s := serve(t, func(o *options) { o.policy = compactor.Policy{Target: 4 << 10} })
		const path, fork = "/ds/trial/s", "/ds/trial/f"
		s.create(path, "text/plain", "")
		var content strings.Builder
		var tails []string
		for i := range 10 {
			text := strings.Repeat(fmt.Sprintf("%d;", i), scaled(1<<10, 1<<19))
			content.WriteString(text)
			tails = append(tails, s.append(path, "text/plain", text))
		}
		all := content.String()
		if cold {
			s.seal(path)
		}
		s.want(201, "PUT", fork, "own", "Stream-Forked-From: "+path, "Stream-Fork-Offset: "+tails[4])
		s.want(204, "PUT", path+"/snapshot/"+tails[7], "S")
		s.collect()
		s.restart()
		want := all[:position(tails[4])] + "own"
		same(t, "fork", s.read(fork, "-1"), want)
		s.want(410, "GET", path+"?offset="+tails[6], "")
		same(t, "source", s.read(path, tails[7]), all[position(tails[7]):])
		s.want(410, "PUT", "/ds/trial/late", "", "Stream-Forked-From: "+path, "Stream-Fork-Offset: "+tails[1])
		b := s.bootstrap(fork + "/bootstrap")
		if cold {
			// Inherited bytes are cold: the snapshot part alone, and where to read on.
			if len(b.parts) != 1 || b.upToDate() || s.read(fork, b.next()) != want {
				t.Errorf("cold: %d parts, %v", len(b.parts), b.header)
			}
		} else if len(b.parts) != 2 || b.parts[1] != want || !b.upToDate() {
			t.Errorf("hot: %d parts, %v", len(b.parts), b.header)
		}
	}
}

func longChain(t *testing.T) {
	const n = 200
	s := serve(t)
	path := func(i int) string { return fmt.Sprintf("/ds/trial/f%03d", i) }
	want := ""
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("%04d", i), 256)
		want += text
		header := []string{"Content-Type: text/plain"}
		if i > 0 {
			header = append(header, "Stream-Forked-From: "+path(i-1))
		}
		s.want(201, "PUT", path(i), text, header...)
		if i%7 == 3 {
			s.seal(path(i))
		}
	}
	last := path(n - 1)
	began := time.Now()
	s.holds(last, want)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("reading took %v", took)
	}
	for i := 0; i < n-1; i += 2 {
		s.want(204, "DELETE", path(i), "")
	}
	s.collect()
	s.holds(last, want)
	s.restart()
	s.holds(last, want)
	for i := 1; i < n-1; i += 2 {
		s.want(204, "DELETE", path(i), "")
	}
	s.collect()
	s.holds(last, want)
	s.want(204, "DELETE", last, "")
	for i := range n {
		s.want(404, "HEAD", path(i), "")
	}
	s.collect()
	if left := s.segments(); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
}

func onlyTrueCloses(t *testing.T) {
	s := serve(t)
	const path = "/ds/trial/s"
	s.create(path, "text/plain", "")
	ignored := []string{"false", "0", "yes", "1", "", "truely", "true, true"}
	for _, value := range ignored {
		header := "Stream-Closed: " + value
		if a := s.want(204, "POST", path, "x", "Content-Type: text/plain", header); a.header.Get("Stream-Closed") != "" {
			t.Errorf("%q closes", value)
		}
		s.want(400, "POST", path, "", header)
		s.want(200, "PUT", path, "", "Content-Type: text/plain", header)
	}
	for i, value := range []string{" true ", "TRUE", "True"} {
		header := "Stream-Closed: " + value
		closed := fmt.Sprintf("/ds/trial/c%d", i)
		s.create(closed, "text/plain", "", header)
		s.want(200, "PUT", closed, "", "Content-Type: text/plain", header)
		s.want(409, "PUT", closed, "", "Content-Type: text/plain", "Stream-Closed: false")
		s.want(409, "PUT", closed, "", "Content-Type: text/plain")
		s.want(409, "PUT", path, "", "Content-Type: text/plain", header)
		s.want(409, "POST", closed, "x", "Content-Type: text/plain")
	}
	if a := s.want(204, "POST", path, "end", "Content-Type: text/plain", "Stream-Closed:  TRUE "); a.header.Get("Stream-Closed") != "true" {
		t.Errorf("TRUE does not close: %v", a.header)
	}
}
