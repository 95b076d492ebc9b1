package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"firn/internal/api"
)

const subscriptions = "/v1/stream/__ds/subscriptions/"

// held is a wake as whoever holds it knows it.
type held struct {
	WakeID        string `json:"wake_id"`
	Generation    int    `json:"generation"`
	Token         string `json:"token"`
	CallbackToken string `json:"callback_token"`
}

func (h held) bearer() string { return "Authorization: Bearer " + h.Token + h.CallbackToken }

// say is a word about a wake, to which all bytes of stream e are done.
func (h held) say(tail string, done bool) string {
	return fmt.Sprintf(`{"wake_id":%q,"generation":%d,"acks":[{"stream":"e","offset":%q}],"done":%v}`, h.WakeID, h.Generation, tail, done)
}

// sink is a receiver of webhooks that leaves its answer to callbacks.
func sink(t *testing.T) (url string, got chan held) {
	t.Helper()
	got = make(chan held, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var h held
		if err := json.NewDecoder(r.Body).Decode(&h); err != nil {
			t.Error(err)
		}
		got <- h
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// acked is where a subscription stands in stream e.
func (c *client) acked(id string) string {
	c.t.Helper()
	var s struct {
		Streams []struct {
			Path  string `json:"path"`
			Acked string `json:"acked_offset"`
		} `json:"streams"`
	}
	if err := json.Unmarshal([]byte(c.want(200, "GET", subscriptions+id, "").body), &s); err != nil {
		c.t.Fatal(err)
	}
	for _, l := range s.Streams {
		if l.Path == "e" {
			return l.Acked
		}
	}
	return ""
}

// refused does a request that must fail with a code of the control APIs.
func (c *client) refused(what string, status int, code, path, body string, header ...string) {
	c.t.Helper()
	a := c.do("POST", path, body, header...)
	if a.status != status {
		c.t.Errorf("%s: %d %s, want %d", what, a.status, a.body, status)
		return
	}
	var p struct{ Error struct{ Code string } }
	if json.Unmarshal([]byte(a.body), &p) != nil || p.Error.Code != code {
		c.t.Errorf("%s: %s, want %s", what, a.body, code)
	}
}

// A callback, an ack or a release counts only with the token of the subscription and of
// its present generation, sent as the Authorization, and with that generation and wake
// in the body (B§7.3, B§12.9). Nothing else moves a cursor.
func TestFencing(t *testing.T) {
	c := connectSubscriptions(t, api.Options{})
	url, got := sink(t)
	c.create("/v1/stream/wakes", "application/json", "")
	c.want(201, "PUT", subscriptions+"hook", `{"type":"webhook","streams":["e"],"webhook":{"url":"`+url+`"}}`)
	c.want(201, "PUT", subscriptions+"pull", `{"type":"pull-wake","streams":["e"],"wake_stream":"wakes"}`)
	tail := c.create("/v1/stream/e", "application/json", "1")
	claim := func() (h held) {
		c.want(200, "POST", subscriptions+"pull/claim", `{"worker":"w"}`).decode(t, &h)
		return h
	}
	giveUp := func(h held) string {
		return fmt.Sprintf(`{"wake_id":%q,"generation":%d,"done":true}`, h.WakeID, h.Generation)
	}

	before := map[string]held{"hook": <-got, "pull": claim()}
	// Given up, both are woken again.
	c.want(200, "POST", subscriptions+"hook/callback", giveUp(before["hook"]), before["hook"].bearer())
	c.want(204, "POST", subscriptions+"pull/release", giveUp(before["pull"]), before["pull"].bearer())
	now := map[string]held{"hook": <-got, "pull": claim()}

	for _, to := range []struct{ id, does string }{{"hook", "callback"}, {"pull", "ack"}, {"pull", "release"}} {
		path, h, old := subscriptions+to.id+"/"+to.does, now[to.id], before[to.id]
		other := now[map[string]string{"hook": "pull", "pull": "hook"}[to.id]]
		if h.Generation != old.Generation+1 || h.WakeID == old.WakeID {
			t.Fatalf("%s: woken with %+v after %+v", to.id, h, old)
		}
		start := c.acked(to.id)
		if start == tail {
			t.Fatalf("%s begins at the tail", to.id)
		}
		say, token := h.say(tail, true), h.Token+h.CallbackToken
		const invalid, fenced = "TOKEN_INVALID", "FENCED"
		c.refused(to.does+" without a token", 401, invalid, path, say)
		c.refused(to.does+" with the token in the query", 401, invalid, path+"?token="+token+"&access_token="+token, say)
		c.refused(to.does+" with the token in the body", 401, invalid, path, strings.Replace(say, "{", `{"token":"`+token+`","callback_token":"`+token+`",`, 1))
		c.refused(to.does+" with the token in a cookie", 401, invalid, path, say, "Cookie: token="+token)
		c.refused(to.does+" with another subscription's token", 401, invalid, path, say, other.bearer())
		c.refused(to.does+" with a changed token", 401, invalid, path, say, h.bearer()+"x")
		c.refused(to.does+" with the last token", 409, fenced, path, say, old.bearer())
		c.refused(to.does+" of the last wake", 409, fenced, path, old.say(tail, true), old.bearer())
		c.refused(to.does+" of the last wake with this token", 409, fenced, path, old.say(tail, true), h.bearer())
		for what, wrong := range map[string]held{
			"the last wake id":          {WakeID: old.WakeID, Generation: h.Generation},
			"no wake id":                {Generation: h.Generation},
			"the last generation":       {WakeID: h.WakeID, Generation: old.Generation},
			"a generation that will be": {WakeID: h.WakeID, Generation: h.Generation + 1},
			"no generation":             {WakeID: h.WakeID},
		} {
			c.refused(to.does+" with "+what, 409, fenced, path, wrong.say(tail, true), h.bearer())
		}
		if at := c.acked(to.id); at != start {
			t.Errorf("%s: refused requests moved the cursor from %s to %s", to.does, start, at)
		}
	}

	c.want(200, "POST", subscriptions+"hook/callback", now["hook"].say(tail, true), now["hook"].bearer())
	c.want(200, "POST", subscriptions+"pull/ack", now["pull"].say(tail, false), now["pull"].bearer())
	for _, id := range []string{"hook", "pull"} {
		if at := c.acked(id); at != tail {
			t.Errorf("%s: acked up to %s", id, at)
		}
	}
	c.want(204, "POST", subscriptions+"pull/release", giveUp(now["pull"]), now["pull"].bearer())
}

// What comes for a subscription that is deleted fails, and moves no cursor of one that
// is made in its place (B§6.3).
func TestDeletedUnderItsWorker(t *testing.T) {
	c := connectSubscriptions(t, api.Options{})
	url, got := sink(t)
	c.create("/v1/stream/wakes", "application/json", "")
	configs := map[string]string{
		"hook": `{"type":"webhook","streams":["e"],"webhook":{"url":"` + url + `"}}`,
		"pull": `{"type":"pull-wake","streams":["e"],"wake_stream":"wakes"}`,
	}
	for id, config := range configs {
		c.want(201, "PUT", subscriptions+id, config)
	}
	first := c.create("/v1/stream/e", "application/json", "1")
	var claimed held
	c.want(200, "POST", subscriptions+"pull/claim", `{"worker":"w"}`).decode(t, &claimed)
	wakes := map[string]held{"hook/callback": <-got, "pull/ack": claimed, "pull/release": claimed}
	for id := range configs {
		c.want(204, "DELETE", subscriptions+id, "")
	}
	for path, h := range wakes {
		c.refused(path+" of one that is deleted", 404, "SUBSCRIPTION_NOT_FOUND", subscriptions+path, h.say(first, true), h.bearer())
	}
	for id, config := range configs {
		c.want(201, "PUT", subscriptions+id, config)
	}
	second := c.append("/v1/stream/e", "application/json", "2")
	c.want(200, "POST", subscriptions+"pull/claim", `{"worker":"w"}`)
	<-got
	for path, h := range wakes {
		c.refused(path+" to its successor", 401, "TOKEN_INVALID", subscriptions+path, h.say(second, true), h.bearer())
	}
	for id := range configs {
		if at := c.acked(id); at != first {
			t.Errorf("%s is at %s, was linked at %s", id, at, first)
		}
	}
}
