package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"firn/internal/subscribe"
	"firn/internal/subscribe/webhook"
)

// maxControlBody bounds the bodies of the control APIs.
const maxControlBody = 64 << 10

// controlRoots are the roots of the control APIs (B§6) with what paths in their bodies
// are relative to.
var controlRoots = []struct {
	path  string
	scope subscribe.Scope
}{
	{flatRoot, subscribe.Flat},
	{bucketRoot, subscribe.Bucketed},
}

// controls answers for the control APIs below one root.
type controls struct {
	server *Server
	engine *subscribe.Engine
	root   string // without the slash at its end
	scope  subscribe.Scope
}

// controlRoutes are to be matched before those of streams.
func (s *Server) controlRoutes(m *mux.Router) {
	for _, r := range controlRoots {
		prefix := r.path + reservedSegment
		if s.opts.Subscriptions != nil {
			c := &controls{s, s.opts.Subscriptions, strings.TrimSuffix(r.path, "/"), r.scope}
			c.routes(m, prefix)
		}
		m.Path(prefix + "{rest:(?:/.*)?}").Handler(s.refuse(errReserved))
	}
}

func (c *controls) routes(m *mux.Router, prefix string) {
	add := func(template string, on methods) {
		name := strings.NewReplacer("{path:.+}", "{path}").Replace(prefix + template)
		h := c.server.resource(name, on)
		m.Path(prefix + template).HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.(*answer).control = true
			h.ServeHTTP(w, r)
		})
	}
	read := func(h handler) methods { return methods{http.MethodGet: h, http.MethodHead: h} }
	post := func(h handler) methods { return methods{http.MethodPost: h} }

	add("/jwks.json", read(c.jwks))
	one := read(c.get)
	one[http.MethodPut], one[http.MethodDelete] = c.put, c.delete
	add("/subscriptions/{id}", one)
	add("/subscriptions/{id}/streams", post(c.addStreams))
	add("/subscriptions/{id}/streams/{path:.+}", methods{http.MethodDelete: c.removeStream})
	add("/subscriptions/{id}/callback", post(c.callback))
	add("/subscriptions/{id}/claim", post(c.claim))
	add("/subscriptions/{id}/ack", post(c.ack))
	add("/subscriptions/{id}/release", post(c.release))
}

// base is the URL of the root, as the client addressed it.
func (c *controls) base(r *http.Request) string { return c.server.location(r, c.root) }

// id is that of the subscription.
func (c *controls) id(r *http.Request) (string, error) {
	id, err := url.PathUnescape(mux.Vars(r)["id"])
	if err != nil {
		return "", errSubscriptionID
	}
	return id, subscribe.CheckID(id)
}

// body decodes a JSON body of at most [maxControlBody] bytes into v.
func (c *controls) body(a *answer, r *http.Request, v any) error {
	b, err := c.server.bodies.readUpTo(a, r, maxControlBody)
	if err != nil {
		return err
	}
	defer b.release()
	// What is no UTF-8 would be read as something else.
	if !utf8.Valid(b.bytes) || json.Unmarshal(b.bytes, v) != nil {
		return errControlBody
	}
	return nil
}

// token is what the request shows (B§12.9).
func token(r *http.Request) (string, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", subscribe.ErrToken
	}
	return token, nil
}

// controlProblem is an error as the control APIs show it (B§7.1).
type controlProblem struct {
	Error struct {
		Code       string  `json:"code"`
		Message    string  `json:"message"`
		Holder     string  `json:"current_holder,omitempty"`
		Generation *uint64 `json:"generation,omitempty"`
	} `json:"error"`
}

// controlRules are the errors that only the control APIs have. All others have the
// codes of rules, in capitals. With text, the error says more than its rule.
var controlRules = []struct {
	rule
	text bool
}{
	{rule{subscribe.ErrNotFound, 404, "SUBSCRIPTION_NOT_FOUND", 0}, false},
	{rule{subscribe.ErrExists, 409, "SUBSCRIPTION_ALREADY_EXISTS", 0}, false},
	{rule{subscribe.ErrInvalid, 400, "INVALID_REQUEST", 0}, true},
	{rule{errControlBody, 400, "INVALID_REQUEST", 0}, false},
	{rule{errSubscriptionID, 400, "INVALID_REQUEST", 0}, false},
	{rule{webhook.ErrTarget, 400, "WEBHOOK_URL_REJECTED", 0}, true},
	{rule{subscribe.ErrLimit, 409, "LIMIT_REACHED", 0}, true},
	{rule{subscribe.ErrToken, 401, "TOKEN_INVALID", 0}, false},
	{rule{subscribe.ErrTokenExpired, 401, "TOKEN_EXPIRED", 0}, false},
	{rule{subscribe.ErrFenced, 409, "FENCED", 0}, false},
	{rule{subscribe.ErrNoWork, 409, "NO_PENDING_WORK", 0}, false},
	{rule{subscribe.ErrOffset, 409, "INVALID_OFFSET", 0}, false},
}

// codeHeld is that of a [subscribe.HeldError].
const codeHeld = "ALREADY_CLAIMED"

// controlProblemOf finds the answer of the control APIs to an error; known is false for
// failures of the server.
func controlProblemOf(err error) (status int, header http.Header, p controlProblem, known bool) {
	if held := new(subscribe.HeldError); errors.As(err, &held) {
		p.Error.Code, p.Error.Message = codeHeld, held.Error()
		p.Error.Holder, p.Error.Generation = held.Holder, &held.Generation
		return http.StatusConflict, nil, p, true
	}
	for _, r := range controlRules {
		if !errors.Is(err, r.err) {
			continue
		}
		p.Error.Code, p.Error.Message = r.code, r.err.Error()
		if r.text {
			p.Error.Message = err.Error()
		}
		header = http.Header{}
		if r.status == http.StatusUnauthorized {
			header.Set("Www-Authenticate", "Bearer")
		}
		return r.status, header, p, true
	}
	general, known := problemOf(err)
	p.Error.Code, p.Error.Message = strings.ToUpper(general.Code), general.Detail
	return general.Status, general.header, p, known
}
