package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/gorilla/mux"

	"firn/internal/subscribe"
)

// put makes a subscription or confirms it (B§6.2).
func (c *controls) put(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	var config subscribe.Config
	if err := c.body(a, r, &config); err != nil {
		return err
	}
	info, created, err := c.engine.Put(r.Context(), c.scope, id, config, c.base(r))
	if err != nil {
		return err
	}
	if !created {
		return writeJSON(a, info)
	}
	a.Header().Set(headerLocation, c.server.location(r, r.URL.EscapedPath()))
	return writeJSONStatus(a, http.StatusCreated, info)
}

// get shows a subscription (B§6.3).
func (c *controls) get(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	info, err := c.engine.Get(r.Context(), c.scope, id, c.base(r))
	if err != nil {
		return err
	}
	return writeJSON(a, info)
}

// delete removes a subscription (B§6.3).
func (c *controls) delete(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	return noContent(a, c.engine.Delete(r.Context(), c.scope, id))
}

// addStreams links streams explicitly (B§6.4).
func (c *controls) addStreams(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	var asked struct {
		Streams []string `json:"streams"`
	}
	if err := c.body(a, r, &asked); err != nil {
		return err
	}
	return noContent(a, c.engine.AddStreams(r.Context(), c.scope, id, asked.Streams))
}

// removeStream takes an explicit link away (B§6.4). The path may have its slashes
// escaped or not.
func (c *controls) removeStream(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	path, err := url.PathUnescape(mux.Vars(r)["path"])
	if err != nil {
		return errControlBody
	}
	return noContent(a, c.engine.RemoveStream(r.Context(), c.scope, id, path))
}

// jwks shows the keys that webhooks are signed with (B§6.5).
func (c *controls) jwks(a *answer, r *http.Request) error {
	a.Header().Set(headerCacheControl, "public, max-age=300")
	return writeJSONType(a, http.StatusOK, "application/jwk-set+json", c.engine.JWKS())
}

// claim gives a worker a pull-wake (B§7.2).
func (c *controls) claim(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	var asked struct {
		Worker string `json:"worker"`
	}
	if err := c.body(a, r, &asked); err != nil {
		return err
	}
	claimed, err := c.engine.Claim(r.Context(), c.scope, id, asked.Worker)
	if err != nil {
		return err
	}
	return writeJSON(a, claimed)
}

// callback takes the word of a webhook's receiver (B§7.1).
func (c *controls) callback(a *answer, r *http.Request) error { return c.heed(a, r, c.engine.Callback) }

// ack takes the word of the worker that holds a pull-wake (B§7.2).
func (c *controls) ack(a *answer, r *http.Request) error { return c.heed(a, r, c.engine.Ack) }

// acker is what becomes of an ack; next says whether another wake follows.
type acker func(ctx context.Context, scope subscribe.Scope, id, token string, r subscribe.AckRequest) (next bool, err error)

func (c *controls) heed(a *answer, r *http.Request, ack acker) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	token, err := token(r)
	if err != nil {
		return err
	}
	var asked subscribe.AckRequest
	if err := c.body(a, r, &asked); err != nil {
		return err
	}
	next, err := ack(r.Context(), c.scope, id, token, asked)
	if err != nil {
		return err
	}
	return writeJSON(a, struct {
		OK       bool `json:"ok"`
		NextWake bool `json:"next_wake"`
	}{true, next})
}

// release gives a pull-wake back (B§7.2).
func (c *controls) release(a *answer, r *http.Request) error {
	id, err := c.id(r)
	if err != nil {
		return err
	}
	token, err := token(r)
	if err != nil {
		return err
	}
	var asked subscribe.WakeRequest
	if err := c.body(a, r, &asked); err != nil {
		return err
	}
	return noContent(a, c.engine.Release(r.Context(), c.scope, id, token, asked))
}

// noContent sends 204 unless there is an error.
func noContent(a *answer, err error) error {
	if err == nil {
		a.WriteHeader(http.StatusNoContent)
	}
	return err
}
