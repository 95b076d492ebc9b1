package api_test

import (
	"strings"
	"testing"

	"firn/internal/api"
)

// Whoever sends bad JSON is told what is wrong with it, and where (B§9.1.4).
func TestBadJSONIsExplained(t *testing.T) {
	c, _ := connect(t, api.Options{})
	c.create("/ds/trial/s", "application/json", "")
	for body, says := range map[string][]string{
		`{"a":01}`:       {"byte 6", "leading zero"},
		"[1,2":           {"byte 4", "unexpected end"},
		"[\"a\xff\"]":    {"byte 3", "UTF-8"},
		`{"a":1}{"b":2}`: {"byte 7", "text after the end"},
	} {
		for method, path := range map[string]string{"POST": "/ds/trial/s", "PUT": "/ds/trial/new"} {
			a := c.want(400, method, path, body, "Content-Type: application/json")
			for _, word := range says {
				if a.code() != "json_invalid" || !strings.Contains(a.body, word) {
					t.Errorf("%s %q: %s does not say %q", method, body, a.body, word)
				}
			}
		}
	}
}
