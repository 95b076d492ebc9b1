package trials_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"firn/tier"
)

// TestEventsGoOnWhereABootstrapStopped: going live right after a bootstrap that
// stopped early misses nothing. Events bring what lies between first, in either tier,
// and are up to date only then (S).
func TestEventsGoOnWhereABootstrapStopped(t *testing.T) {
	for _, kind := range []string{"application/json", "application/octet-stream"} {
		for _, cold := range []bool{false, true} {
			s := serve(t, func(o *options) { o.tier = tier.Options{BootstrapBytes: 4 << 10, ReadBytes: 2 << 10} })
			const path = "/ds/trial/s"
			s.create(path, kind, `"before"`)
			s.want(204, "PUT", path+"/snapshot/"+s.tail(path), "S")
			var want []string
			add := func(n int) {
				for range n {
					want = append(want, fmt.Sprintf(`"%04d%s"`, len(want), strings.Repeat("x", 100)))
					s.append(path, kind, want[len(want)-1])
				}
			}
			add(60)
			if cold {
				s.seal(path)
			}
			add(20)
			b := s.bootstrap(path + "/bootstrap")
			got := strings.Join(b.parts[1:], "")
			if b.upToDate() || b.header.Get("Stream-Closed") != "" || b.parts[0] != "S" {
				t.Fatalf("%s, cold %t: %v", kind, cold, b.header)
			}
			if complete := kind == "application/json" && !cold; complete != (len(got) > 0) {
				t.Errorf("%s, cold %t: %d bytes of updates", kind, cold, len(got))
			}
			e := s.subscribe(path + "?offset=" + b.next() + "&live=sse")
			for {
				data, control := e.must()
				if kind == "application/json" {
					data = strings.Join(messages(t, data), "")
				} else if raw, err := base64.StdEncoding.DecodeString(data); err != nil {
					t.Fatal(err)
				} else {
					data = string(raw)
				}
				got += data
				if all := len(got) == len(strings.Join(want, "")); control.UpToDate != all {
					t.Fatalf("%s, cold %t: up to date %t after %d bytes", kind, cold, control.UpToDate, len(got))
				} else if all {
					break
				}
			}
			same(t, fmt.Sprintf("%s, cold %t", kind, cold), got, strings.Join(want, ""))
		}
	}
}
