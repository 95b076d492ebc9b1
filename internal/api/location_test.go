package api

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"
)

func TestLocation(t *testing.T) {
	s := &Server{opts: Options{TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128"),
	}}}
	tests := []struct {
		name   string
		remote string
		tls    bool
		host   string
		header http.Header
		want   string
	}{
		{"plain", "192.0.2.1:5", false, "h:80", headers(), "http://h:80/p%20q"},
		{"tls", "192.0.2.1:5", true, "h", headers(), "https://h/p%20q"},
		{"untrusted", "192.0.2.1:5", false, "h", headers("X-Forwarded-Proto: https", "X-Forwarded-Host: evil"), "http://h/p%20q"},
		{"trusted", "10.1.2.3:5", false, "h", headers("X-Forwarded-Proto: https", "X-Forwarded-Host: pub.example"), "https://pub.example/p%20q"},
		{"trusted, mapped address", "[::ffff:10.1.2.3]:5", false, "h", headers("X-Forwarded-Proto: https"), "https://h/p%20q"},
		{"trusted, IPv6", "[::1]:5", false, "h", headers("X-Forwarded-Host: pub.example"), "http://pub.example/p%20q"},
		{"trusted, appended to the client's", "10.1.2.3:5", false, "h", headers("X-Forwarded-Proto: http, HTTPS", "X-Forwarded-Host: evil, pub.example"), "https://pub.example/p%20q"},
		{"trusted, a line after the client's", "10.1.2.3:5", false, "h", headers("X-Forwarded-Proto: http", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil", "X-Forwarded-Host: a, pub.example"), "https://pub.example/p%20q"},
		{"trusted, nothing appended", "10.1.2.3:5", false, "h", headers("X-Forwarded-Proto: https,", "X-Forwarded-Host: evil, "), "http://h/p%20q"},
		{"untrusted, names a proxy", "192.0.2.1:5", false, "h", headers("X-Forwarded-For: 10.1.2.3", "Forwarded: for=10.1.2.3;host=evil;proto=https", "X-Forwarded-Host: evil"), "http://h/p%20q"},
		{"trusted, other headers", "10.1.2.3:5", false, "h", headers("Forwarded: host=evil;proto=https", "X-Forwarded-Port: 1", "X-Forwarded-Prefix: /evil"), "http://h/p%20q"},
		{"no address", "@", false, "h", headers("X-Forwarded-Host: evil"), "http://h/p%20q"},
		{"trusted, nonsense", "10.1.2.3:5", false, "h", headers("X-Forwarded-Proto: javascript", "X-Forwarded-Host: a/b"), "http://h/p%20q"},
		{"no host", "192.0.2.1:5", false, "", headers(), "/p%20q"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: tt.remote, Host: tt.host, Header: tt.header}
			if tt.tls {
				r.TLS = new(tls.ConnectionState)
			}
			if got := s.location(r, "/p%20q"); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
