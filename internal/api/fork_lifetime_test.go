package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

// The lifetime of a fork is what it asks for, and its source's if it asks for none
// (B§4.2). The source keeps its own.
func TestLifetimeOfAFork(t *testing.T) {
	const (
		hour, day   = "Stream-TTL: 3600", "Stream-TTL: 86400"
		soon, later = "Stream-Expires-At: 2080-01-02T03:04:05.000Z", "Stream-Expires-At: 2090-01-02T03:04:05.000Z"
	)
	for _, tt := range []struct{ name, source, fork, want string }{
		{"none and none", "", "", ""},
		{"none and a TTL", "", hour, hour},
		{"none and an end", "", soon, soon},
		{"a TTL and none", hour, "", hour},
		{"a TTL and a longer one", hour, day, day},
		{"a TTL and a shorter one", day, hour, hour},
		{"a TTL and an end", hour, soon, soon},
		{"an end and none", soon, "", soon},
		{"an end and a TTL", soon, hour, hour},
		{"an end and a later one", soon, later, later},
		{"an end and an earlier one", later, soon, soon},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := connect(t, api.Options{})
			with := func(lifetime string, header ...string) []string {
				if lifetime != "" {
					header = append(header, lifetime)
				}
				return header
			}
			c.want(201, "PUT", "/ds/trial/s", "x", with(tt.source, "Stream-Closed: true")...)
			c.want(201, "PUT", "/ds/trial/f", "", with(tt.fork, "Stream-Forked-From: /ds/trial/s")...)
			c.want(201, "PUT", "/ds/trial/g", "", "Stream-Forked-From: /ds/trial/f")
			for path, want := range map[string]string{"s": tt.source, "f": tt.want, "g": tt.want} {
				h := c.want(200, "HEAD", "/ds/trial/"+path, "").header
				for _, name := range []string{"Stream-TTL", "Stream-Expires-At"} {
					value, _ := strings.CutPrefix(want, name+": ")
					if value == want {
						value = ""
					}
					if got := h.Get(name); got != value {
						t.Errorf("%s: %s is %q, want %q", path, name, got, value)
					}
				}
				// Whatever the source is, a fork begins open.
				if closed := h.Get("Stream-Closed") == "true"; closed != (path == "s") {
					t.Errorf("%s: closed %t", path, closed)
				}
			}
		})
	}
}
