package api_test

import (
	"fmt"
	"strings"
	"testing"

	"firn/internal/api"
)

// TestBootstrapOfEightMiB is at the limit that is there without any option.
func TestBootstrapOfEightMiB(t *testing.T) {
	const limit = 8 << 20
	c, _ := connect(t, api.Options{})
	text := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	for _, tt := range []struct {
		contentType string
		sizes       []int // of messages; of bytes, they are in one part
		parts       int
		complete    bool
		snapshot    string // "" for none
	}{
		{"application/octet-stream", []int{limit}, 1, true, "S"},
		{"application/octet-stream", []int{limit, 2}, 0, false, "S"},
		{"application/json", []int{limit + 1}, 0, false, ""},
		{"application/json", []int{limit - 3, 3}, 2, true, ""},
		{"application/json", []int{limit - 3, 4, 2}, 1, false, "S"},
	} {
		path := fmt.Sprintf("/ds/trial/%s-%d", strings.ReplaceAll(tt.contentType, "/", "-"), len(tt.sizes)*limit+tt.sizes[0])
		start := c.create(path, tt.contentType, "")
		ends := []string{start}
		for _, n := range tt.sizes {
			ends = append(ends, c.append(path, tt.contentType, text(n)))
		}
		if tt.snapshot != "" {
			c.want(204, "PUT", path+"/snapshot/"+start, tt.snapshot)
		}
		a := c.want(200, "GET", path+"/bootstrap", "")
		if n := strings.Count(a.body, "\r\nContent-Type: "+tt.contentType+"\r\n\r\n\""); n != tt.parts {
			t.Errorf("%s of %d: %d parts, want %d", tt.contentType, tt.sizes, n, tt.parts)
		}
		if (a.header.Get("Stream-Up-To-Date") == "true") != tt.complete || a.next() != ends[tt.parts] {
			t.Errorf("%s of %d: %v", tt.contentType, tt.sizes, a.header)
		}
		if first := "\r\nContent-Type: application/octet-stream\r\n\r\n" + tt.snapshot + "\r\n--"; !strings.Contains(a.body[:min(200, len(a.body))], first) {
			t.Errorf("%s of %d: begins with %.200q", tt.contentType, tt.sizes, a.body)
		}
	}
}
