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
		switch proto := strings.ToLower(firstOf(r.Header.Get("X-Forwarded-Proto"))); proto {
		case "http", "https":
			scheme = proto
		}
		if h := firstOf(r.Header.Get("X-Forwarded-Host")); h != "" && !strings.ContainsAny(h, "/?#@ \\\"<>") {
			host = h
		}
	}
	if host == "" {
		return escapedPath // HTTP/1.0 without a Host
	}
	return scheme + "://" + host + escapedPath
}

// firstOf returns the first element of a list, which the proxy nearest to the client wrote.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
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
