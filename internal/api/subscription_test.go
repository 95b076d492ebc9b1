package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"firn/internal/api"
	"firn/internal/subscribe"
	"firn/internal/subscribe/webhook"
)

// connectSubscriptions is connect with subscriptions.
func connectSubscriptions(t *testing.T, o api.Options) *client {
	t.Helper()
	o.Store, o.Subscriptions = newSubscribed(t)
	c, _ := connectTo(t, o)
	return c
}

// errorOf decodes an error of the control APIs.
func (a answer) errorOf(t *testing.T) (code string, rest map[string]any) {
	t.Helper()
	var p struct{ Error map[string]any }
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("error %d %q of type %s: %v", a.status, a.body, a.header.Get("Content-Type"), err)
	}
	code, _ = p.Error["code"].(string)
	if text, _ := p.Error["message"].(string); text == "" {
		t.Errorf("error %q has no message", a.body)
	}
	return code, p.Error
}

func (a answer) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("decode %q: %v", a.body, err)
	}
}

func TestControlErrors(t *testing.T) {
	c := connectSubscriptions(t, api.Options{})
	hook := `{"type":"webhook","pattern":"*","webhook":{"url":"https://worker.example/"}}`
	c.want(201, "PUT", "/v1/stream/__ds/subscriptions/there", hook)
	c.want(201, "PUT", "/v1/stream/__ds/subscriptions/pull", `{"type":"pull-wake","streams":["a"],"wake_stream":"w"}`)
	big := func(n int) string { return `{"streams":[]` + strings.Repeat(" ", n-14) + "}" }
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", "/x", "", 404, "SUBSCRIPTION_NOT_FOUND"},
		{"PUT", "/x", "", 400, "INVALID_REQUEST"},
		{"PUT", "/x", "[]", 400, "INVALID_REQUEST"},
		{"PUT", "/x", "{} {}", 400, "INVALID_REQUEST"},
		{"PUT", "/x", strings.Replace(hook, "*", "\xff", 1), 400, "INVALID_REQUEST"},
		{"PUT", "/x", "{}", 400, "INVALID_REQUEST"},
		{"PUT", "/x", strings.Replace(hook, `"*"`, `7`, 1), 400, "INVALID_REQUEST"},
		{"PUT", "/x", strings.Replace(hook, `{"type"`, `{"lease_ttl_ms":1000.5,"type"`, 1), 400, "INVALID_REQUEST"},
		{"PUT", "/x", strings.Replace(hook, `{"type"`, `{"lease_ttl_ms":-1000,"type"`, 1), 400, "INVALID_REQUEST"},
		{"PUT", "/x", strings.Replace(hook, "https", "http", 1), 400, "WEBHOOK_URL_REJECTED"},
		{"PUT", "/x", strings.Replace(hook, "worker.example", "169.254.169.254", 1), 400, "WEBHOOK_URL_REJECTED"},
		{"PUT", "/" + strings.Repeat("x", 257), hook, 400, "INVALID_REQUEST"},
		{"PUT", "/a%2Fb", hook, 400, "INVALID_REQUEST"},
		{"PUT", "/there", strings.Replace(hook, "*", "**", 1), 409, "SUBSCRIPTION_ALREADY_EXISTS"},
		{"POST", "/there", "", 405, "METHOD_NOT_ALLOWED"},
		{"GET", "/there/claim", "", 405, "METHOD_NOT_ALLOWED"},
		{"POST", "/there/streams", big(64 << 10), 400, "INVALID_REQUEST"},
		{"POST", "/there/streams", big(64<<10 + 1), 413, "BODY_TOO_LARGE"},
		{"POST", "/x/streams", `{"streams":["a"]}`, 404, "SUBSCRIPTION_NOT_FOUND"},
		{"DELETE", "/x/streams/a", "", 404, "SUBSCRIPTION_NOT_FOUND"},
		{"DELETE", "/there/streams/a%2F%2Fb", "", 400, "INVALID_REQUEST"},
		{"POST", "/there/claim", `{"worker":"w"}`, 400, "INVALID_REQUEST"},
		{"POST", "/pull/claim", `{"worker":""}`, 400, "INVALID_REQUEST"},
		{"POST", "/pull/claim", `{"worker":"` + strings.Repeat("w", 257) + `"}`, 400, "INVALID_REQUEST"},
		{"POST", "/pull/claim", `{"worker":"` + strings.Repeat("w", 256) + `"}`, 409, "NO_PENDING_WORK"},
		{"POST", "/pull/ack", `{}`, 401, "TOKEN_INVALID"},
		{"POST", "/pull/release", `{}`, 401, "TOKEN_INVALID"},
		{"POST", "/there/callback", `{}`, 401, "TOKEN_INVALID"},
	} {
		name := fmt.Sprintf("%s %.30s %.60s", tt.method, tt.path, tt.body)
		a := c.do(tt.method, "/v1/stream/__ds/subscriptions"+tt.path, tt.body)
		if a.status != tt.status {
			t.Errorf("%s: %d %s, want %d", name, a.status, a.body, tt.status)
			continue
		}
		if code, _ := a.errorOf(t); code != tt.code {
			t.Errorf("%s: code %s, want %s", name, code, tt.code)
		}
		if (a.status == 401) != (a.header.Get("Www-Authenticate") == "Bearer") {
			t.Errorf("%s: asks for %q", name, a.header.Get("Www-Authenticate"))
		}
	}
	for _, token := range []string{"Bearer x", "Basic x", "Bearer", "Bearer  "} {
		a := c.want(401, "POST", "/v1/stream/__ds/subscriptions/pull/ack", "{}", "Authorization: "+token)
		if code, _ := a.errorOf(t); code != "TOKEN_INVALID" {
			t.Errorf("token %q: code %s", token, code)
		}
	}
	for _, path := range []string{"/ds/__ds", "/v1/stream/__ds", "/v1/stream/__ds/x", "/v1/stream/__ds/subscriptions", "/ds/__ds/subscriptions/x/y"} {
		if a := c.want(400, "PUT", path, ""); a.code() != "name_reserved" {
			t.Errorf("PUT %s: %s", path, a.body)
		}
	}
	if a := c.want(404, "HEAD", "/v1/stream/__ds/subscriptions/x", ""); a.body != "" {
		t.Errorf("HEAD: body %q", a.body)
	}
}

func TestSubscriptionIsShown(t *testing.T) {
	c := connectSubscriptions(t, api.Options{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	const path = "/v1/stream/__ds/subscriptions/one%20two"
	body := `{"type":"webhook","pattern":"e/*","streams":["x/y"],"webhook":{"url":"https://worker.example/?a=1&b=2"},"description":"<d>"}`
	made := c.want(201, "PUT", path, body)
	if got := made.header.Get("Location"); got != c.url+path {
		t.Errorf("location %s", got)
	}
	var i struct {
		ID      string
		Streams []struct{ Path string }
		Webhook struct {
			URL     string
			Signing struct {
				JWKS string `json:"jwks_url"`
			}
		}
	}
	made.decode(t, &i)
	if i.ID != "one two" || len(i.Streams) != 1 || i.Webhook.Signing.JWKS != c.url+"/v1/stream/__ds/jwks.json" || !strings.Contains(made.body, `a=1&b=2`) {
		t.Errorf("created %s", made.body)
	}
	if again := c.want(200, "PUT", path, body); again.body != made.body {
		t.Errorf("confirmed %s, created %s", again.body, made.body)
	}
	got := c.want(200, "GET", path, "")
	if got.body != made.body || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("read %s with %q", got.body, got.header.Get("Cache-Control"))
	}
	c.want(200, "GET", path, "", "X-Forwarded-Proto: https", "X-Forwarded-Host: streams.example").decode(t, &i)
	if i.Webhook.Signing.JWKS != "https://streams.example/v1/stream/__ds/jwks.json" {
		t.Errorf("behind a proxy: %s", i.Webhook.Signing.JWKS)
	}
	for _, root := range []string{"/v1/stream", "/ds"} {
		keys := c.want(200, "GET", root+"/__ds/jwks.json", "")
		if keys.header.Get("Content-Type") != "application/jwk-set+json" || keys.header.Get("Cache-Control") != "public, max-age=300" || strings.Count(keys.body, `"kid"`) != 1 {
			t.Errorf("keys %s with %v", keys.body, keys.header)
		}
	}
	c.want(204, "POST", path+"/streams", `{"streams":["x/z"]}`)
	c.want(204, "DELETE", path+"/streams/x/z", "")
	c.want(204, "DELETE", path+"/streams/x%2Fy", "")
	c.want(200, "GET", path, "").decode(t, &i)
	if len(i.Streams) != 0 {
		t.Errorf("streams %+v", i.Streams)
	}
	c.want(204, "DELETE", path, "")
	c.want(204, "DELETE", path, "")
	c.want(404, "GET", path, "")
}

// TestWakeThroughTheSurface goes the way of a webhook and of a pull-wake on both
// surfaces, from the append to the last ack.
func TestWakeThroughTheSurface(t *testing.T) {
	for _, root := range []string{"/v1/stream/", "/ds/"} {
		t.Run(root, func(t *testing.T) {
			c := connectSubscriptions(t, api.Options{})
			type wake struct {
				CallbackURL   string `json:"callback_url"`
				CallbackToken string `json:"callback_token"`
				Token         string `json:"token"`
				WakeID        string `json:"wake_id"`
				Generation    int    `json:"generation"`
				Streams       []struct {
					Path string `json:"path"`
					Tail string `json:"tail_offset"`
				} `json:"streams"`
			}
			got := make(chan wake, 10)
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var w wake
				if err := json.NewDecoder(r.Body).Decode(&w); err != nil {
					t.Error(err)
				}
				got <- w
			}))
			t.Cleanup(srv.Close)
			subs := root + "__ds/subscriptions/"
			c.create(root+"trial/wakes", "application/json", "")
			c.want(201, "PUT", subs+"hook", `{"type":"webhook","pattern":"trial/e","webhook":{"url":"`+srv.URL+`"}}`)
			c.want(201, "PUT", subs+"pull", `{"type":"pull-wake","pattern":"trial/*","wake_stream":"trial/wakes"}`)
			tail := c.create(root+"trial/e", "application/json", "1")

			w := <-got
			if w.CallbackURL != c.url+subs+"hook/callback" || len(w.Streams) != 1 || w.Streams[0].Path != "trial/e" || w.Streams[0].Tail != tail {
				t.Fatalf("webhook %+v", w)
			}
			say := func(w wake, done bool) string {
				return fmt.Sprintf(`{"wake_id":%q,"generation":%d,"acks":[{"stream":"trial/e","offset":%q}],"done":%v}`, w.WakeID, w.Generation, w.Streams[0].Tail, done)
			}
			callback := strings.TrimPrefix(w.CallbackURL, c.url)
			for _, done := range []bool{false, true} {
				a := c.want(200, "POST", callback, say(w, done), "Authorization: Bearer "+w.CallbackToken)
				if strings.TrimSpace(a.body) != `{"ok":true,"next_wake":false}` {
					t.Errorf("callback: %s", a.body)
				}
			}
			a := c.want(409, "POST", callback, say(w, true), "Authorization: bearer "+w.CallbackToken)
			if code, _ := a.errorOf(t); code != "FENCED" {
				t.Errorf("repeated callback: %s", a.body)
			}

			c.want(200, "POST", subs+"pull/claim", `{"worker":"a"}`).decode(t, &w)
			a = c.want(409, "POST", subs+"pull/claim", `{"worker":"b"}`)
			if code, rest := a.errorOf(t); code != "ALREADY_CLAIMED" || rest["current_holder"] != "a" || rest["generation"] != 1.0 {
				t.Errorf("second claim: %s", a.body)
			}
			bearer := "Authorization: Bearer " + w.Token
			past := strings.Replace(say(w, true), tail, tail[:len(tail)-1]+"9", 1)
			a = c.want(409, "POST", subs+"pull/ack", past, bearer)
			if code, _ := a.errorOf(t); code != "INVALID_OFFSET" {
				t.Errorf("ack past the tail: %s", a.body)
			}
			c.want(200, "POST", subs+"pull/ack", say(w, false), bearer)
			c.want(204, "POST", subs+"pull/release", fmt.Sprintf(`{"wake_id":%q,"generation":%d}`, w.WakeID, w.Generation), bearer)
			c.want(409, "POST", subs+"pull/ack", say(w, true), bearer)
		})
	}
}

// newEngine runs subscriptions that may go to this machine.
func newEngine(t *testing.T, o subscribe.Options) *subscribe.Engine {
	t.Helper()
	o.Webhooks.Targets = webhook.Localhost
	e, err := subscribe.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return e
}
