package trials_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestOneModelOfBoundaries tries every position of a stream for everything that takes
// an offset: reads, forks, snapshots, and the parts of a bootstrap agree on what is a
// boundary, wherever the bytes are (X§2.1).
func TestOneModelOfBoundaries(t *testing.T) {
	for kind, content := range map[string]struct {
		body     string
		messages []string // as a bootstrap has them
	}{
		"application/json":         {`[ {"a": [1, 2]}, "x\ny", [] , 4.50 ]`, []string{`{"a":[1,2]}`, `"x\ny"`, `[]`, `4.50`}},
		"text/plain":               {"one\ntwo\r\n", []string{"one\ntwo\r\n"}},
		"application/octet-stream": {"\x00\xff\n--\r\n", []string{"\x00\xff\n--\r\n"}},
	} {
		for _, cold := range []bool{false, true} {
			s := serve(t)
			const path = "/ds/trial/s"
			tail := s.create(path, kind, content.body)
			boundaries, length := []int{0}, 0
			for _, m := range content.messages {
				length += len(m)
				if kind == "application/json" {
					length++
					boundaries = append(boundaries, length)
				}
			}
			if kind != "application/json" {
				boundaries = boundaries[:0]
				for i := range length + 1 {
					boundaries = append(boundaries, i)
				}
			}
			if position(tail) != length {
				t.Fatalf("%s: the tail is %s, want %d bytes", kind, tail, length)
			}
			if b := s.bootstrap(path + "/bootstrap"); !slices.Equal(b.parts[1:], content.messages) {
				t.Errorf("%s: parts %q", kind, b.parts)
			}
			if cold {
				s.seal(path)
			}
			for i := range length + 2 {
				offset, ok := at(tail, i), slices.Contains(boundaries, i)
				what := fmt.Sprintf("%s, cold %t, position %d", kind, cold, i)
				read, fork, snapshot := 400, 400, 400
				switch {
				case ok:
					read, fork, snapshot = 200, 201, 204
				case i > length:
					snapshot = 409
				}
				for _, live := range []string{"", "&live=long-poll", "&live=sse"} {
					if ok && (live == "&live=sse" || i == length && live != "") {
						continue // it would wait
					}
					if a := s.do("GET", path+"?offset="+offset+live, ""); a.status != read {
						t.Errorf("%s: read%s is %d %s", what, live, a.status, a.body)
					}
				}
				of := fmt.Sprintf("/ds/trial/f%d", i)
				if a := s.do("PUT", of, "", "Stream-Forked-From: "+path, "Stream-Fork-Offset: "+offset); a.status != fork {
					t.Errorf("%s: fork is %d %s", what, a.status, a.body)
				}
				// On a fork of all, which has the positions of its source.
				whole := fmt.Sprintf("/ds/trial/w%d", i)
				s.want(201, "PUT", whole, "", "Stream-Forked-From: "+path)
				if a := s.do("PUT", whole+"/snapshot/"+offset, "S"); a.status != snapshot {
					t.Errorf("%s: publication is %d %s", what, a.status, a.body)
				}
				if !ok || cold {
					continue
				}
				// What follows the snapshot begins at that boundary.
				b := s.bootstrap(whole + "/bootstrap")
				var rest []string
				if kind == "application/json" {
					rest = content.messages[slices.Index(boundaries, i):]
				} else if i < length {
					rest = []string{content.messages[0][i:]}
				}
				if !slices.Equal(b.parts, append([]string{"S"}, rest...)) {
					t.Errorf("%s: bootstrap %q", what, b.parts)
				}
			}
		}
	}
}

// TestGoneMeansBootstrap: wherever a read is 410 because a snapshot has moved the
// start, bootstrap has a snapshot of exactly that start, and goes on from there
// (X§2.2, X§2.4, X§3.4). No read gives a byte of the snapshot.
func TestGoneMeansBootstrap(t *testing.T) {
	const blob = "snapshot-blob"
	for _, kind := range []string{"application/json", "application/octet-stream"} {
		s := serve(t)
		const source, fork, late = "/ds/trial/s", "/ds/trial/f", "/ds/trial/late"
		s.create(source, kind, "")
		var tails []string
		for i := range 6 {
			tails = append(tails, s.append(source, kind, fmt.Sprintf(`"m%d"`, i)))
		}
		// check says where a stream begins, "" for at its first byte.
		check := func(when, path, start string) {
			t.Helper()
			a := s.do("GET", path+"?offset=-1", "")
			head := s.want(200, "HEAD", path, "").header.Get("Stream-Snapshot-Offset")
			b := s.bootstrap(path + "/bootstrap")
			if start == "" {
				if a.status != 200 || head != "" || b.header.Get("Stream-Snapshot-Offset") != "-1" || b.parts[0] != "" {
					t.Errorf("%s: %s is %d, HEAD has %q, bootstrap %v", when, path, a.status, head, b.header)
				}
				s.want(404, "GET", path+"/snapshot", "")
				return
			}
			if a.status != 410 || a.header.Get("Stream-Earliest-Offset") != start {
				t.Errorf("%s: %s is %d from %v, want 410 and %s", when, path, a.status, a.header, start)
			}
			loc := s.want(307, "GET", path+"/snapshot", "").header.Get("Location")
			if b.header.Get("Stream-Snapshot-Offset") != start || b.parts[0] != blob || b.types[0] != "text/x-state" || head != start || loc != s.url+path+"/snapshot/"+start {
				t.Errorf("%s: %s begins at %s, HEAD has %s, the latest is %s, bootstrap %v %q", when, path, start, head, loc, b.header, b.parts)
			}
			for _, tail := range tails {
				if position(tail) < position(start) {
					s.want(410, "GET", path+"?offset="+tail, "")
				}
			}
			all := s.read(path, start)
			rest := b.parts[1:]
			if kind == "application/json" {
				rest = []string{"[" + strings.Join(rest, ",") + "]"}
			}
			if b.upToDate() && strings.Join(rest, "") != all || strings.Contains(all, "blob") {
				t.Errorf("%s: %s: read %q, bootstrap %q", when, path, all, b.parts)
			}
		}
		publish := func(path, offset string) {
			t.Helper()
			s.want(204, "PUT", path+"/snapshot/"+offset, blob, "Content-Type: text/x-state")
		}
		s.want(201, "PUT", fork, "", "Stream-Forked-From: "+source)
		check("at first", source, "")
		check("at first", fork, "")
		publish(source, tails[1])
		check("published", source, tails[1])
		check("published in the source", fork, "")
		s.want(201, "PUT", late, "", "Stream-Forked-From: "+source, "Stream-Fork-Offset: "+tails[4])
		check("forked afterwards", late, tails[1])
		publish(source, tails[5])
		publish(fork, tails[2])
		s.seal(source, fork, late)
		for range 2 {
			check("published again", source, tails[5])
			check("with its own", fork, tails[2])
			check("with what it inherited", late, tails[1])
			s.restart()
		}
		s.want(204, "DELETE", source, "")
		s.collect()
		check("without its source", fork, tails[2])
		check("without its source", late, tails[1])
	}
}
