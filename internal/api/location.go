package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// location returns the absolute URL of an escaped path on this server, as the client
// addressed it.
func (s *Server) location(r *http.Request, escapedPath string) string {
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if s.trusts(r.RemoteAddr) {
		switch proto := strings.ToLower(lastOf(r.Header["X-Forwarded-Proto"])); proto {
		case "http", "https":
			scheme = proto
		}
		if h := lastOf(r.Header["X-Forwarded-Host"]); h != "" && !strings.ContainsAny(h, "/?#@ \\\"<>") {
			host = h
		}
	}
	if host == "" {
		return escapedPath // HTTP/1.0 without a Host
	}
	return scheme + "://" + host + escapedPath
}

// lastOf returns the last element of a list, the one that the peer wrote. Some proxies
// append to what the client sent, which may be anything.
func lastOf(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	last := lines[len(lines)-1]
	return strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
}

func (s *Server) trusts(remote string) bool {
	if len(s.opts.TrustedProxies) == 0 {
		return false
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range s.opts.TrustedProxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}
