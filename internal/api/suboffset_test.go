package api_test

import (
	"fmt"
	"strings"
	"testing"

	"firn/internal/api"
)

// TestSubOffsetsCountOverAppends: the reference server, and so the suite, counts within
// the first append after the anchor. Here appends leave no trace: messages, or bytes,
// are counted to the tail, also beyond where the source itself left its own source.
func TestSubOffsetsCountOverAppends(t *testing.T) {
	for _, kind := range []string{"application/json", "text/plain"} {
		t.Run(kind, func(t *testing.T) {
			c, _ := connect(t, api.Options{})
			units := []string{"1", "2", "3", "4", "5", "6", "7"}
			wire := func(units []string) string {
				if kind == "application/json" {
					return "[" + strings.Join(units, ",") + "]"
				}
				return strings.Join(units, "")
			}
			anchors := []string{c.create("/ds/trial/root", kind, "")}
			anchors = append(anchors, c.append("/ds/trial/root", kind, wire(units[:1])))
			c.append("/ds/trial/root", kind, wire(units[1:3]))
			anchors = append(anchors, c.append("/ds/trial/root", kind, wire(units[3:4])))
			c.want(201, "PUT", "/ds/trial/source", "", "Stream-Forked-From: /ds/trial/root")
			c.append("/ds/trial/root", kind, wire(units[:1])) // is not the source's
			c.append("/ds/trial/source", kind, wire(units[4:6]))
			c.append("/ds/trial/source", kind, wire(units[6:]))
			for i, before := range []int{0, 1, 4} { // units before each anchor
				for n := 0; n <= len(units)-before+1; n++ {
					path := fmt.Sprintf("/ds/trial/fork-%d-%d", i, n)
					a := c.do("PUT", path, "", "Stream-Forked-From: /ds/trial/source", "Stream-Fork-Offset: "+anchors[i], fmt.Sprintf("Stream-Fork-Sub-Offset: %d", n))
					if n > len(units)-before {
						if a.status != 400 || a.code() != "fork_sub_offset_past_data" {
							t.Errorf("%d from %s: got %d %s", n, anchors[i], a.status, a.body)
						}
						c.want(404, "HEAD", path, "")
						continue
					}
					if a.status != 201 {
						t.Fatalf("%d from %s: got %d %s", n, anchors[i], a.status, a.body)
					}
					if got, want := c.want(200, "GET", path, "").body, wire(units[:before+n]); got != want {
						t.Errorf("%d from %s: holds %s, want %s", n, anchors[i], got, want)
					}
					if at := c.want(200, "GET", path+"?offset="+a.next(), ""); at.header.Get("Stream-Up-To-Date") != "true" || strings.Trim(at.body, "[]") != "" {
						t.Errorf("%d from %s: at its tail %q, %v", n, anchors[i], at.body, at.header)
					}
				}
			}
		})
	}
}
