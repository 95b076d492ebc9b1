package api

import (
	"net/http"
	"slices"
	"strings"
)

// What browsers may send, and what scripts may see of an answer.
var (
	corsMethods = "GET, HEAD, POST, PUT, DELETE, OPTIONS"
	corsAllow   = strings.Join([]string{
		"Accept", "Authorization", "Cache-Control", "Content-Type", "If-None-Match", "Last-Event-ID",
		"Traceparent", "Tracestate",
		"Stream-TTL", "Stream-Expires-At", "Stream-Seq", "Stream-Closed", "Stream-Cursor",
		"Stream-Forked-From", "Stream-Fork-Offset", "Stream-Fork-Sub-Offset",
		"Producer-Id", "Producer-Epoch", "Producer-Seq",
	}, ", ")
	corsExpose = strings.Join([]string{
		"ETag", "Location", "Content-Type", "Content-Length", "Retry-After", "Server-Timing",
		"Stream-Next-Offset", "Stream-Cursor", "Stream-Up-To-Date", "Stream-Closed", "Stream-TTL",
		"Stream-Expires-At", "Stream-Earliest-Offset", "Stream-Snapshot-Offset", "Stream-SSE-Data-Encoding",
		"Producer-Epoch", "Producer-Seq", "Producer-Expected-Seq", "Producer-Received-Seq",
	}, ", ")
)

// apply marks the answers to listed origins, errors too: a script must see why it
// failed. When every origin is admitted the headers are fixed.
func (c CORS) apply(h http.Header, r *http.Request) {
	if c.Off || c.admitsAll() {
		return
	}
	h.Add(headerVary, "Origin")
	if origin := r.Header.Get("Origin"); slices.Contains(c.Origins, origin) {
		h.Set(headerAllowOrigin, origin)
		h.Set(headerExposeHeaders, corsExpose)
	}
}

// preflight answers OPTIONS for every path alike: what exists is not its business.
func (s *Server) preflight(a *answer, r *http.Request) {
	a.route = "preflight"
	h := a.Header()
	h.Set(headerAllow, corsMethods)
	if h.Get(headerAllowOrigin) != "" {
		h.Del(headerExposeHeaders)
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsAllow)
		h.Set("Access-Control-Max-Age", "86400")
	}
	s.bodies.discard(a, r)
	a.WriteHeader(http.StatusNoContent)
}
