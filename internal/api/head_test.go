package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"firn/internal/api"
)

// HEAD of whatever can be read answers the status and the headers of GET, and no body.
// Streams have a HEAD of their own (B§5.5): it is about the stream, not about a page.
func TestHeadOfEverything(t *testing.T) {
	c := connectSubscriptions(t, api.Options{})
	at := c.create("/ds/trial/s", "application/json", records(5000))
	c.create("/ds/trial/plain", "text/plain", "x", "Stream-TTL: 1000")
	c.want(204, "PUT", "/ds/trial/s/snapshot/"+at, records(5000), "Content-Type: application/json")
	c.want(201, "PUT", "/v1/stream/__ds/subscriptions/x", `{"type":"pull-wake","pattern":"a","wake_stream":"w"}`)
	tag := c.want(200, "GET", "/ds/trial/s/snapshot/"+at, "").header.Get("ETag")
	tags := tag + ", " + strings.TrimSuffix(tag, `"`) + `-gzip"`

	// A length that nobody has counted yet may be left out (RFC 9110 §9.3.2).
	length := []string{"Content-Length"}
	body := []string{"Content-Type", "Content-Length", "Content-Encoding"}
	page := []string{"Content-Length", "Content-Encoding", "Etag", "Cache-Control", "Server-Timing", "Stream-Up-To-Date"}
	for _, tt := range []struct {
		path   string
		status int
		not    []string // headers that HEAD may lack or have otherwise
		header []string
	}{
		{"/ds/trial", 200, nil, nil},
		{"/ds/trial/streams", 200, nil, nil},
		{"/ds/trial/streams?limit=1", 200, nil, nil},
		{"/ds/trial/s/snapshot", 307, length, nil},
		{"/ds/trial/s/snapshot/" + at, 200, length, nil},
		{"/ds/trial/s/snapshot/" + at, 304, nil, []string{"If-None-Match: " + tags}},
		{"/ds/trial/s/bootstrap", 200, body, nil},
		{"/ds/trial/plain", 200, append(page, "Stream-Ttl"), nil},
		{"/v1/stream/__ds/subscriptions/x", 200, nil, nil},
		{"/v1/stream/__ds/jwks.json", 200, nil, nil},
		{"/ds/__ds/jwks.json", 200, nil, nil},
		{"/", 404, body, nil},
		{"/ds/absent", 404, body, nil},
		{"/ds/abc", 400, body, nil},
		{"/ds/absent/streams", 404, body, nil},
		{"/ds/trial/streams?limit=0", 400, body, nil},
		{"/ds/trial/absent", 404, body, nil},
		{"/v1/stream/absent/x", 404, body, nil},
		{"/ds/trial/plain/snapshot", 404, body, nil},
		{"/ds/trial/plain/snapshot/" + at, 404, body, nil},
		{"/ds/trial/absent/bootstrap", 404, body, nil},
		{"/ds/trial/s/bootstrap?live=sse", 400, body, nil},
		{"/v1/stream/__ds/subscriptions/y", 404, body, nil},
		{"/v1/stream/__ds/x", 400, body, nil},
		{"/ds/__ds/subscriptions/x/y", 400, body, nil},
	} {
		for _, accepted := range []string{"", "gzip, zstd", "gzip, identity;q=0"} {
			header := append([]string{"Accept-Encoding: " + accepted}, tt.header...)
			get := c.want(tt.status, "GET", tt.path, "", header...)
			head := c.want(tt.status, "HEAD", tt.path, "", header...)
			if head.body != "" {
				t.Errorf("HEAD %s has a body", tt.path)
			}
			for _, name := range differences(get.header, head.header) {
				if !slices.Contains(tt.not, name) {
					t.Errorf("%s for %q: %s is %q, of HEAD %q", tt.path, accepted, name, get.header[name], head.header[name])
				}
			}
			if strings.Contains(tt.path, "/__ds/") && tt.status == 400 && get.header.Get("Content-Encoding") == "" && get.code() != "name_reserved" {
				t.Errorf("%s: %s", tt.path, get.body)
			}
		}
	}
}

// differences are the names of the headers that are not alike, Date aside.
func differences(a, b http.Header) []string {
	var names []string
	for _, h := range []http.Header{a, b} {
		for name := range h {
			if name != "Date" && !slices.Equal(a[name], b[name]) {
				names = append(names, name)
			}
		}
	}
	return names
}
