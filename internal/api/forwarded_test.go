package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"firn/internal/api"
)

// Every URL that the server makes begins as the client addressed it. What a peer says of
// another address counts only if the peer is a trusted proxy.
func TestForwardedURLs(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		name := map[bool]string{false: "untrusted", true: "trusted"}[trusted]
		t.Run(name, func(t *testing.T) {
			o := api.Options{}
			if trusted {
				o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			c := connectSubscriptions(t, o)
			want := c.url
			if trusted {
				want = "https://pub.example"
			}
			forwarded := []string{"X-Forwarded-Proto: http, https", "X-Forwarded-Host: evil.example, pub.example"}
			location := func(status int, method, path, body string, header ...string) {
				t.Helper()
				a := c.want(status, method, path, body, append(header, forwarded...)...)
				if got := a.header.Get("Location"); !strings.HasPrefix(got, want+path) {
					t.Errorf("%s %s: location %s", method, path, got)
				}
			}
			location(201, "PUT", "/ds/bucket", "")
			location(201, "PUT", "/ds/bucket/s", "x")
			location(201, "PUT", "/v1/stream/a/b", "x")
			at := c.want(200, "HEAD", "/ds/bucket/s", "").next()
			c.want(204, "PUT", "/ds/bucket/s/snapshot/"+at, "S", forwarded...)
			location(307, "GET", "/ds/bucket/s/snapshot", "")

			called := make(chan string, 1)
			hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var wake struct {
					CallbackURL string `json:"callback_url"`
				}
				if err := json.NewDecoder(r.Body).Decode(&wake); err != nil {
					t.Error(err)
				}
				called <- wake.CallbackURL
			}))
			t.Cleanup(hook.Close)
			const sub = "/v1/stream/__ds/subscriptions/x"
			location(201, "PUT", sub, `{"type":"webhook","pattern":"e","webhook":{"url":"`+hook.URL+`"}}`)
			if a := c.want(200, "GET", sub, "", forwarded...); !strings.Contains(a.body, `"`+want+`/v1/stream/__ds/jwks.json"`) || strings.Contains(a.body, "evil") {
				t.Errorf("shown as %s", a.body)
			}
			c.create("/v1/stream/e", "text/plain", "x")
			select {
			case got := <-called:
				if got != want+sub+"/callback" {
					t.Errorf("callback to %s", got)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("no wake")
			}
		})
	}
}
