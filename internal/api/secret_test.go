package api_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"firn/internal/api"
)

// members returns the names of all members of a JSON text, those of inner objects with
// the way to them.
func members(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	names := map[string]bool{}
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				names[at+name] = true
				walk(at+name+".", inner)
			}
		case []any:
			for _, inner := range v {
				walk(at, inner)
			}
		}
	}
	walk("", v)
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

// No answer holds a key that signs, or a token that is not the asker's own: what there
// is to be seen of a subscription and of the keys is all named here (B§6.2, B§6.5).
func TestNoSecretIsShown(t *testing.T) {
	c := connectSubscriptions(t, api.Options{})
	url, got := sink(t)
	c.create("/v1/stream/wakes", "application/json", "")
	const hook = " webhook webhook.signing webhook.signing.alg webhook.signing.jwks_url webhook.signing.kid webhook.url"
	const common = "created_at description id lease_ttl_ms pattern status streams streams.acked_offset streams.link_type streams.path subscription_id type wake_stream"
	for id, tt := range map[string]struct{ config, more string }{
		"hook": {`"type":"webhook","webhook":{"url":"` + url + `"}`, hook},
		"pull": {`"type":"pull-wake","wake_stream":"wakes"`, ""},
	} {
		config := "{" + tt.config + `,"pattern":"e/*","description":"d","streams":["e"]}`
		for _, status := range []int{201, 200} {
			if got := members(t, c.want(status, "PUT", subscriptions+id, config).body); got != common+tt.more {
				t.Errorf("%s, made with %d: %s", id, status, got)
			}
		}
	}
	// Nor while a wake is under way.
	c.create("/v1/stream/e", "application/json", "1")
	<-got
	c.want(200, "POST", subscriptions+"pull/claim", `{"worker":"w"}`)
	for id, more := range map[string]string{"hook": hook, "pull": ""} {
		if got := members(t, c.want(200, "GET", subscriptions+id, "").body); got != common+more {
			t.Errorf("%s: %s", id, got)
		}
	}
	if got := members(t, c.want(409, "POST", subscriptions+"pull/claim", `{"worker":"v"}`).body); got != "error error.code error.current_holder error.generation error.message" {
		t.Errorf("a claim that is refused: %s", got)
	}
	for _, root := range []string{"/v1/stream", "/ds"} {
		if got := members(t, c.want(200, "GET", root+"/__ds/jwks.json", "").body); got != "keys keys.alg keys.crv keys.kid keys.kty keys.use keys.x" {
			t.Errorf("keys: %s", got)
		}
	}
}
